//! `#[handler]`: a function, and beside it what an outbox has to know to register it.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, LitStr, Path, Result, ReturnType, Type, parse_quote};

use crate::name;
use crate::settings::{read_each, unknown, value};

/// Everything that can stand in `#[handler(…)]`.
const SETTINGS: [&str; 9] = ["event", "aggregate", "name", "batch", "retry", "timeout", "fallback", "on_dead", "crate"];

/// The settings in a `#[handler(…)]` attribute.
#[derive(Default)]
pub(crate) struct Settings {
    event: Option<LitStr>,
    aggregate: Option<LitStr>,
    name: Option<LitStr>,
    batch: Option<Expr>,
    retry: Option<Expr>,
    timeout: Option<Expr>,
    fallback: Option<Expr>,
    on_dead: Option<Expr>,
    krate: Option<Path>,
}

impl Parse for Settings {
    fn parse(list: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        read_each(list, &mut Vec::new(), "name = \"mailer\"", |setting| settings.read(setting, list))?;
        settings.check()?;
        Ok(settings)
    }
}

impl Settings {
    fn read(&mut self, setting: &Ident, list: ParseStream<'_>) -> Result<()> {
        match setting.to_string().as_str() {
            "event" => self.event = Some(name::EVENT.read(value(setting, list)?)?),
            "aggregate" => self.aggregate = Some(name::AGGREGATE.read(value(setting, list)?)?),
            "name" => self.name = Some(name::HANDLER.read(value(setting, list)?)?),
            "batch" => self.batch = Some(value(setting, list)?.parse()?),
            "retry" => self.retry = Some(value(setting, list)?.parse()?),
            "timeout" => self.timeout = Some(value(setting, list)?.parse()?),
            "fallback" => self.fallback = Some(value(setting, list)?.parse()?),
            "on_dead" => self.on_dead = Some(value(setting, list)?.parse()?),
            "crate" => self.krate = Some(value(setting, list)?.call(Path::parse_mod_style)?),
            _ => return Err(unknown(setting, SETTINGS)),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.event.is_some() {
            return Ok(());
        }
        let without = match (&self.aggregate, &self.batch) {
            (Some(aggregate), _) => ("aggregate", aggregate.span()),
            (None, Some(batch)) => ("batch", batch.span()),
            (None, None) => return Ok(()),
        };
        let problem = format!(
            "`{}` needs the type of the event beside it, such as event = \"order.placed\"; a handler of a typed event needs \
             neither",
            without.0
        );
        Err(Error::new(without.1, problem))
    }

    /// The expression that makes a registration of the function.
    fn registration(&self, krate: &Path, function: &Ident) -> TokenStream {
        let handle = quote! { #krate::handle };
        let route = self.event.as_ref().map(|event| match &self.aggregate {
            Some(aggregate) => quote! { (#aggregate, #event) },
            None => quote! { #event },
        });
        // The call stands where the function does, so that a signature that is no handler's is reported there.
        let span = function.span();
        let on = match (&route, &self.batch) {
            (Some(route), Some(batch)) => quote_spanned! { span=> #handle::on_batch(#route, #batch, #function) },
            (Some(route), None) => quote_spanned! { span=> #handle::on_type(#route, #function) },
            (None, _) => quote_spanned! { span=> #handle::on(#function) },
        };
        let name = self.name.as_ref().map(|name| quote! { .named(#name) });
        let retry = self.retry.as_ref().map(|retry| quote! { .retry(#retry) });
        let fallback = self.fallback.as_ref().map(|fallback| quote! { .fallback(#fallback) });
        let on_dead = self.on_dead.as_ref().map(|observer| quote! { .on_dead(#observer) });
        let timeout = self.timeout.as_ref().map(|timeout| quote! { .timeout(#timeout) });
        quote! { #on #name #retry #timeout #fallback #on_dead }
    }
}

/// The function, as a type of its name that can be registered, and called as the function was.
pub(crate) fn handler(settings: &Settings, mut function: ItemFn) -> Result<TokenStream> {
    check(&function)?;
    let krate = settings.krate.clone().unwrap_or_else(|| parse_quote!(::pillarbox));
    let ident = function.sig.ident.clone();
    let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let is_for_the_type = |attribute: &Attribute| {
        ["doc", "cfg", "deprecated", "allow", "expect"].iter().any(|name| attribute.path().is_ident(name))
    };
    let attributes: Vec<Attribute> = function.attrs.iter().filter(|one| is_for_the_type(one)).cloned().collect();
    let configured = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let types: Vec<&Type> = function.sig.inputs.iter().filter_map(argument).collect();
    let names: Vec<Ident> = (0..types.len()).map(|index| format_ident!("argument_{index}")).collect();
    let output = match &function.sig.output {
        ReturnType::Default => quote! { () },
        ReturnType::Type(_, output) => output.to_token_stream(),
    };
    let call = quote! { fn(#(#types),*) -> #krate::handle::BoxFuture<'static, #output> };
    let registration = settings.registration(&krate, &ident);
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #ident;

        #(#configured)*
        const _: () = {
            #function

            #[automatically_derived]
            impl #krate::handle::Register for self::#ident {
                fn register(self) -> #krate::handle::Registration {
                    #registration
                }
            }

            // A type cannot be called, but what it dereferences to can.
            #[automatically_derived]
            impl ::core::ops::Deref for self::#ident {
                type Target = #call;

                fn deref(&self) -> &Self::Target {
                    const CALL: #call = |#(#names),*| ::std::boxed::Box::pin(#ident(#(#names),*));
                    &CALL
                }
            }
        };
    })
}

/// Refuses functions that cannot be a handler by themselves.
fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let problem = "a handler is an async function; one that blocks its thread is registered without the attribute: \
                       on(blocking(…))";
        return Err(Error::new(signature.fn_token.span(), problem));
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        let problem = "a handler is a function of its own, not a method; register a closure that calls the method";
        return Err(Error::new(receiver.span(), problem));
    }
    if !signature.generics.params.is_empty() {
        let problem = "a handler has no parameters in angle brackets: each event type has a handler of its own";
        return Err(Error::new(signature.generics.span(), problem));
    }
    let borrowed = signature.inputs.iter().filter_map(argument).find(|ty| matches!(ty, Type::Reference(_)));
    match borrowed {
        Some(ty) => Err(Error::new(ty.span(), "a handler takes its event and its delivery by value")),
        None => Ok(()),
    }
}

fn argument(argument: &FnArg) -> Option<&Type> {
    match argument {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    }
}
