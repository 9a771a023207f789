//! The signature of a handler: what can be wrong of it without knowing any type, and its parts as code that the compiler checks one by
//! one, each at the place where it is written.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, Receiver, Result, ReturnType, Type};

use crate::handler::Kind;

/// A signature that can be a handler's, as far as that is known without its types.
pub(crate) struct Signature<'a> {
    pub(crate) receiver: Option<&'a Receiver>,
    pub(crate) arguments: Vec<&'a Type>,
    output: TokenStream,
    output_span: Span,
    name_span: Span,
}

impl<'a> Signature<'a> {
    /// Checks a signature.
    pub(crate) fn of(signature: &'a syn::Signature, kind: Kind) -> Result<Self> {
        if signature.asyncness.is_none() {
            let problem = "a handler is an async function; one that blocks its thread is registered without the attribute: \
                           on(blocking(…))";
            return Err(Error::new(signature.fn_token.span(), problem));
        }
        if !signature.generics.params.is_empty() {
            let problem = "a handler has no parameters in angle brackets: each event type has a handler of its own";
            return Err(Error::new(signature.generics.span(), problem));
        }
        let arguments: Vec<&Type> = signature.inputs.iter().filter_map(argument).collect();
        for ty in &arguments {
            check_argument(ty)?;
        }
        check_number(&arguments, signature.paren_token.span.join(), kind)?;
        let name_span = signature.ident.span();
        let (output, output_span) = match &signature.output {
            ReturnType::Default => (quote! { () }, name_span),
            ReturnType::Type(_, output) => (output.to_token_stream(), output.span()),
        };
        let receiver = signature.receiver();
        Ok(Self { receiver, arguments, output, output_span, name_span })
    }

    /// The type that it returns.
    pub(crate) fn output(&self) -> &TokenStream {
        &self.output
    }

    /// The code that reads the event, and the closure of the event and its delivery.
    pub(crate) fn typed(
        &self,
        handle: &TokenStream,
        call: impl FnOnce(&[TokenStream]) -> TokenStream,
    ) -> (TokenStream, TokenStream) {
        let Some((event, delivery)) = self.arguments.split_first() else { return <_>::default() };
        let from = at(event.span(), handle);
        let read = quote_spanned! { event.span()=> #from::part::event::<#event>() };
        let delivery = delivery.first().map(|ty| one_delivery(handle, ty));
        let unused = delivery.is_none().then(|| quote! { let _ = delivery; });
        let arguments: Vec<TokenStream> = std::iter::once(quote! { event }).chain(delivery).collect();
        let answer = self.answer(handle, "outcome", &call(&arguments));
        (read, quote! { move |event, delivery| { #unused #answer } })
    }

    /// The closure of a delivery.
    pub(crate) fn named(&self, handle: &TokenStream, call: impl FnOnce(&[TokenStream]) -> TokenStream) -> TokenStream {
        let delivery = self.arguments.iter().map(|ty| one_delivery(handle, ty));
        let answer = self.answer(handle, "outcome", &call(&delivery.collect::<Vec<_>>()));
        quote! { move |delivery| #answer }
    }

    /// The closure of many deliveries.
    pub(crate) fn batch(&self, handle: &TokenStream, call: impl FnOnce(&[TokenStream]) -> TokenStream) -> TokenStream {
        let deliveries = self.arguments.iter().map(|ty| many_deliveries(handle, ty));
        let answer = self.answer(handle, "outcomes", &call(&deliveries.collect::<Vec<_>>()));
        quote! { move |deliveries| #answer }
    }

    /// The boxed future of a call, with what an outbox makes of its answer.
    fn answer(&self, handle: &TokenStream, map: &str, call: &TokenStream) -> TokenStream {
        let (map, output) = (syn::Ident::new(map, self.output_span), &self.output);
        let from = at(self.output_span, handle);
        let map = quote_spanned! { self.output_span=> #from::part::#map::<#output> };
        self.boxed(handle, call, &map)
    }

    /// The boxed future of a call, with what `map` makes of its answer. That it is not Send is reported at the name of the function.
    pub(crate) fn boxed(&self, handle: &TokenStream, call: &TokenStream, map: &TokenStream) -> TokenStream {
        let handle = at(self.name_span, handle);
        quote_spanned! { self.name_span=> #handle::part::boxed(#call, #map) }
    }
}

fn one_delivery(handle: &TokenStream, ty: &Type) -> TokenStream {
    let handle = at(ty.span(), handle);
    quote_spanned! { ty.span()=> #handle::part::delivery::<#ty>(delivery) }
}

fn many_deliveries(handle: &TokenStream, ty: &Type) -> TokenStream {
    let handle = at(ty.span(), handle);
    quote_spanned! { ty.span()=> #handle::part::deliveries::<#ty>(deliveries) }
}

/// The path `handle`, as if it stood at `span`: the compiler shows a mistake where the path to what is called begins.
fn at(span: Span, handle: &TokenStream) -> TokenStream {
    let moved = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    handle.clone().into_iter().map(moved).collect()
}

fn argument(argument: &FnArg) -> Option<&Type> {
    match argument {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    }
}

fn check_argument(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(_) => Err(Error::new(ty.span(), "a handler takes its event and its delivery by value")),
        Type::ImplTrait(_) => Err(Error::new(
            ty.span(),
            "a handler names the type of its event: each event type has a handler of its own",
        )),
        _ => Ok(()),
    }
}

fn check_number(arguments: &[&Type], parentheses: Span, kind: Kind) -> Result<()> {
    let (most, expected) = match kind {
        Kind::Typed => (2, "a handler takes its event, and then perhaps its `Delivery`"),
        Kind::Named => (1, "a handler with `event = …` takes the `Delivery` of an event, and nothing else"),
        Kind::Batch => (1, "a handler with `batch = …` takes a `Vec<Delivery>`, and nothing else"),
    };
    if arguments.is_empty() {
        return Err(Error::new(parentheses, format!("{expected}; this one takes nothing")));
    }
    match arguments.get(most) {
        Some(further) => Err(Error::new(further.span(), format!("{expected}; this is one argument too many"))),
        None => Ok(()),
    }
}
