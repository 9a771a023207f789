//! `#[handlers]` on an impl block: its methods with `#[handler]`, as the handlers of a value.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Path, Receiver, ReceiverKind, Result, Type,
    parse_quote,
};

use crate::handler::Settings;
use crate::settings::{read_each, unknown, value};
use crate::signature::Signature;

/// The settings in a `#[handlers(…)]` attribute.
#[derive(Default)]
pub(crate) struct Common {
    krate: Option<Path>,
}

impl Parse for Common {
    fn parse(list: ParseStream<'_>) -> Result<Self> {
        let mut common = Self::default();
        read_each(list, &mut Vec::new(), "crate = my_prelude::pillarbox", |setting: &Ident| {
            if setting != "crate" {
                return Err(unknown(setting, ["crate"]));
            }
            common.krate = Some(value(setting, list)?.call(Path::parse_mod_style)?);
            Ok(())
        })?;
        Ok(common)
    }
}

/// The impl block, and beside it the list of its handlers.
pub(crate) fn handlers(common: &Common, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some((path, _)) = &block.trait_ {
        let problem = "handlers are methods of a type: write `#[handlers]` on an impl block without a trait";
        return Err(Error::new_spanned(path, problem));
    }
    let (mut registrations, mut problems) = (Vec::new(), None::<Error>);
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        match registration(common, method) {
            Ok(registration) => registrations.extend(registration),
            Err(error) => match &mut problems {
                Some(problems) => problems.combine(error),
                None => problems = Some(error),
            },
        }
    }
    if let Some(problems) = problems {
        // Beside the block as it is, so that its methods are found by the rest of the program.
        let problems = problems.into_compile_error();
        return Ok(quote! { #block #problems });
    }
    if registrations.is_empty() {
        let problem = "no method in this impl block has the attribute `#[handler]`";
        return Err(Error::new_spanned(&block.self_ty, problem));
    }
    let krate = common.krate.clone().unwrap_or_else(|| parse_quote!(::pillarbox));
    let (params, ty, bounds) = (&block.generics.params, &block.self_ty, &block.generics.where_clause);
    let attributes = block.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let configured: Vec<&Attribute> = attributes.collect();
    Ok(quote! {
        #block

        #(#configured)*
        #[automatically_derived]
        impl<#params> #ty #bounds {
            /// The handlers of this value, to be given to an outbox: `outbox.handlers(shared.handlers())`. Who does not need the value
            /// afterwards gives it by itself: `outbox.handlers(value)`.
            pub fn handlers(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<#krate::handle::Registration> {
                ::std::vec![#({ let this = ::std::sync::Arc::clone(&self); #registrations }),*]
            }
        }

        #(#configured)*
        #[automatically_derived]
        impl<#params> ::core::iter::IntoIterator for #ty #bounds {
            type Item = #krate::handle::Registration;
            type IntoIter = ::std::vec::IntoIter<Self::Item>;

            fn into_iter(self) -> Self::IntoIter {
                <Self>::handlers(::std::sync::Arc::new(self)).into_iter()
            }
        }
    })
}

/// The registration of a method that has the attribute `#[handler]`, which is taken off.
fn registration(common: &Common, method: &mut ImplItemFn) -> Result<Option<TokenStream>> {
    let is_handler =
        |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "handler");
    let Some(index) = method.attrs.iter().position(is_handler) else { return Ok(None) };
    let attribute = method.attrs.remove(index);
    let settings = match &attribute.meta {
        Meta::Path(_) => Settings::default(),
        Meta::List(list) => list.parse_args()?,
        Meta::NameValue(wrong) => {
            return Err(Error::new_spanned(wrong, "write the settings in parentheses: #[handler(…)]"));
        }
    };
    let settings = settings.within(common.krate.as_ref());
    let signature = Signature::of(&method.sig, settings.kind())?;
    let this = signature.receiver.map(by_shared_state).transpose()?;
    let ident = &method.sig.ident;
    let configured = method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let registered = settings.registration(&signature, |arguments| match this {
        None => quote_spanned! { ident.span()=> Self::#ident(#(#arguments),*) },
        Some(State::Counted) => {
            quote_spanned! { ident.span()=> Self::#ident(::std::sync::Arc::clone(&this), #(#arguments),*) }
        }
        // The future keeps the state for as long as it runs.
        Some(State::Borrowed) => quote_spanned! { ident.span()=>
            { let this = ::std::sync::Arc::clone(&this); async move { Self::#ident(&*this, #(#arguments),*).await } }
        },
    });
    let unused = this.is_none().then(|| quote! { drop(this); });
    Ok(Some(quote! { #(#configured)* { #unused #registered } }))
}

/// The way in which a method takes the state of its type.
enum State {
    /// `&self`
    Borrowed,
    /// `self: Arc<Self>`
    Counted,
}

fn by_shared_state(receiver: &Receiver) -> Result<State> {
    let problem = "a handler takes its state as `&self` or `self: Arc<Self>`, since several events are handled at once; put what changes \
                   behind a `Mutex`";
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => Ok(State::Borrowed),
        ReceiverKind::Typed(_, ty) if is_counted(ty) => Ok(State::Counted),
        _ => Err(Error::new_spanned(receiver, problem)),
    }
}

fn is_counted(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Arc"))
}
