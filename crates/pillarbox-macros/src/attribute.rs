use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Error, Ident, LitStr, Path, Result, Token, parenthesized, token};

use crate::codec::Codec;
use crate::field::FieldPath;
use crate::name;
use crate::settings::{read_each, unknown, value};

/// Everything that can stand in `#[event(…)]`.
const SETTINGS: [&str; 9] =
    ["name", "aggregate", "aggregate_id", "key", "tenant", "headers", "codec", "content_type", "crate"];
/// Those of them that name no field.
const WITHOUT_FIELDS: [&str; 5] = ["name", "aggregate", "codec", "content_type", "crate"];

/// The settings in the `#[event(…)]` attributes of a type.
#[derive(Default)]
pub(crate) struct Settings {
    name: Option<LitStr>,
    pub(crate) aggregate: Option<LitStr>,
    pub(crate) aggregate_id: Option<FieldPath>,
    pub(crate) key: Option<FieldPath>,
    pub(crate) tenant: Option<FieldPath>,
    pub(crate) headers: Vec<Header>,
    pub(crate) codec: Codec,
    pub(crate) content_type: Option<LitStr>,
    pub(crate) krate: Option<Path>,
}

/// A header and the field its value comes from.
pub(crate) struct Header {
    pub(crate) name: LitStr,
    pub(crate) field: FieldPath,
}

impl Settings {
    /// Reads the attributes of a type and checks them against its fields.
    pub(crate) fn of(input: &DeriveInput) -> Result<Self> {
        let (mut settings, mut given) = (Self::default(), Vec::new());
        for attribute in attributes(&input.attrs) {
            attribute.parse_args_with(|list: ParseStream<'_>| {
                read_each(list, &mut given, "name = \"order.placed\"", |setting| settings.read(setting, list))
            })?;
        }
        settings.check(input, &given)?;
        Ok(settings)
    }

    /// The one setting that has no default.
    pub(crate) fn name(&self, input: &DeriveInput) -> Result<&LitStr> {
        self.name.as_ref().ok_or_else(|| {
            let problem = format!(
                "the event `{}` has no name; give it one that never changes: #[event(name = \"…\")]",
                input.ident
            );
            Error::new(input.ident.span(), problem)
        })
    }

    fn read(&mut self, setting: &Ident, list: ParseStream<'_>) -> Result<()> {
        match setting.to_string().as_str() {
            "name" => self.name = Some(name::EVENT.read(value(setting, list)?)?),
            "aggregate" => self.aggregate = Some(name::AGGREGATE.read(value(setting, list)?)?),
            "aggregate_id" => self.aggregate_id = Some(value(setting, list)?.parse()?),
            "key" => self.key = Some(value(setting, list)?.parse()?),
            "tenant" => self.tenant = Some(value(setting, list)?.parse()?),
            "headers" => self.headers = headers(setting, list)?,
            "codec" => self.codec = value(setting, list)?.parse()?,
            "content_type" => self.content_type = Some(name::CONTENT_TYPE.read(value(setting, list)?)?),
            "crate" => self.krate = Some(value(setting, list)?.call(Path::parse_mod_style)?),
            _ => return Err(unknown(setting, SETTINGS)),
        }
        Ok(())
    }

    /// Refuses those of the `given` settings that the type cannot provide.
    fn check(&self, input: &DeriveInput, given: &[Ident]) -> Result<()> {
        match &input.data {
            Data::Struct(data) => {
                refuse_on_parts(data.fields.iter().map(|field| &field.attrs))?;
                self.fields().try_for_each(|field| field.check(&data.fields, &input.ident))
            }
            Data::Enum(data) => {
                refuse_on_parts(data.variants.iter().map(|variant| &variant.attrs))?;
                let fields = data.variants.iter().flat_map(|variant| &variant.fields);
                refuse_on_parts(fields.map(|field| &field.attrs))?;
                refuse_fields_of_an_enum(given)
            }
            Data::Union(data) => Err(Error::new(
                data.union_token.span,
                "a union cannot be an event: nothing says which of its fields to write; use an enum",
            )),
        }
    }

    fn fields(&self) -> impl Iterator<Item = &FieldPath> {
        let settings = [&self.aggregate_id, &self.key, &self.tenant].into_iter().flatten();
        settings.chain(self.headers.iter().map(|header| &header.field))
    }
}

fn refuse_fields_of_an_enum(given: &[Ident]) -> Result<()> {
    let Some(setting) = given.iter().find(|setting| !WITHOUT_FIELDS.iter().any(|name| setting == name)) else {
        return Ok(());
    };
    let problem = format!(
        "`{setting}` names a field, and an enum has none that all variants share; put the enum into a struct that has the \
         field, or implement `Event` by hand"
    );
    Err(Error::new(setting.span(), problem))
}

fn attributes(all: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    all.iter().filter(|attribute| attribute.path().is_ident("event"))
}

/// The compiler lets `#[event]` stand on fields and variants too, where it would be ignored.
fn refuse_on_parts<'a>(parts: impl Iterator<Item = &'a Vec<Attribute>>) -> Result<()> {
    match parts.flat_map(|attrs| attributes(attrs)).next() {
        Some(attribute) => Err(Error::new_spanned(
            attribute,
            "`#[event(…)]` belongs on the type and names fields from there, such as #[event(key = order_id)]",
        )),
        None => Ok(()),
    }
}

/// Reads `("name" = field, …)`.
fn headers(setting: &Ident, list: ParseStream<'_>) -> Result<Vec<Header>> {
    if !list.peek(token::Paren) {
        return Err(Error::new(setting.span(), "headers are a list: headers(\"source\" = source, …)"));
    }
    let content;
    parenthesized!(content in list);
    let headers = Punctuated::<Header, Token![,]>::parse_terminated(&content)?;
    let mut names = Vec::new();
    for header in &headers {
        let name = header.name.value();
        if names.contains(&name) {
            return Err(Error::new(
                header.name.span(),
                format!("the header \"{name}\" is given twice; keep one of them"),
            ));
        }
        names.push(name);
    }
    Ok(headers.into_iter().collect())
}

impl syn::parse::Parse for Header {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Ident::peek_any) {
            return Err(input.error("the name of a header is a string: headers(\"source\" = source)"));
        }
        let name = name::HEADER.read(input)?;
        input.parse::<Token![=]>()?;
        Ok(Self { name, field: input.parse()? })
    }
}
