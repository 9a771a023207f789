use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Fields, Ident, Index, LitFloat, LitInt, LitStr, Member, Result, Token, token};

use crate::suggest;

/// The field to read, as written after `self.`: `order_id`, `customer.id`, `0`, `0.id`.
pub(crate) struct FieldPath {
    pub(crate) first: Member,
    pub(crate) rest: Vec<Member>,
}

impl FieldPath {
    /// The span of the field whose value is read: an unsuitable type is reported there.
    pub(crate) fn span(&self) -> Span {
        self.rest.last().unwrap_or(&self.first).span()
    }

    /// Accepts the path if it starts at one of `fields`; what follows the first dot only the compiler can know.
    pub(crate) fn check(&self, fields: &Fields, owner: &Ident) -> Result<()> {
        let known: Vec<String> = fields.members().map(|member| text(&member)).collect();
        let wanted = text(&self.first);
        if known.contains(&wanted) {
            return Ok(());
        }
        let known = || known.iter().map(String::as_str);
        let remedy = match fields {
            Fields::Unit => "it has no fields at all".to_owned(),
            _ => format!("{}its fields are {}", suggest::did_you_mean(&wanted, known()), suggest::list(known())),
        };
        Err(Error::new(self.first.span(), format!("`{owner}` has no field `{wanted}`; {remedy}")))
    }
}

impl Parse for FieldPath {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(LitStr) {
            return Err(
                input.error("a string is a name, but this takes a field: write the field's name without quotes")
            );
        }
        if input.peek(Token![self]) {
            return Err(input.error("name the field alone, without `self.`"));
        }
        let mut members = member(input)?;
        while input.parse::<Option<Token![.]>>()?.is_some() {
            members.extend(member(input)?);
        }
        if input.peek(token::Paren) {
            return Err(input.error(
                "a field is read, not a method called: keep the value in a field, or implement `Event` by hand",
            ));
        }
        let mut members = members.into_iter();
        let Some(first) = members.next() else { return Err(input.error("expected a field")) };
        Ok(Self { first, rest: members.collect() })
    }
}

/// One step of a path. The compiler reads `0.1` as one decimal number, which here are two steps.
fn member(input: ParseStream<'_>) -> Result<Vec<Member>> {
    if input.peek(LitFloat) {
        let number: LitFloat = input.parse()?;
        return number.to_string().split('.').map(|step| position(step, number.span())).collect();
    }
    if input.peek(LitInt) {
        let number: LitInt = input.parse()?;
        return Ok(vec![position(&number.to_string(), number.span())?]);
    }
    if input.peek(Ident::peek_any) {
        return Ok(vec![Member::Named(input.parse()?)]);
    }
    Err(input.error("expected a field, such as `order_id`, `customer.id` or `0`"))
}

fn position(number: &str, span: Span) -> Result<Member> {
    match number.parse() {
        Ok(index) => Ok(Member::Unnamed(Index { index, span })),
        Err(_) => Err(Error::new(span, "a field of a tuple is named by its position: `0`, `1`, `0.1`")),
    }
}

fn text(member: &Member) -> String {
    match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
