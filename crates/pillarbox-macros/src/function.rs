//! `#[handler]` on a function: a type of its name, beside it what an outbox has to know to register it.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Ident, ItemFn, Result};

use crate::handler::Settings;
use crate::signature::Signature;

/// The function, as a type of its name that can be registered, and called as the function was.
pub(crate) fn handler(settings: &Settings, mut function: ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        let problem = "this is a method: its impl block needs the attribute `#[handlers]`, which registers all methods that have \
                       `#[handler]`";
        return Err(Error::new_spanned(receiver, problem));
    }
    let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let signature = Signature::of(&function.sig, settings.kind())?;
    let krate = settings.krate();
    let ident = &function.sig.ident;
    let is_for_the_type = |attribute: &Attribute| {
        ["doc", "cfg", "deprecated", "allow", "expect"].iter().any(|name| attribute.path().is_ident(name))
    };
    let attributes: Vec<Attribute> = function.attrs.iter().filter(|one| is_for_the_type(one)).cloned().collect();
    let configured = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let (types, output) = (&signature.arguments, signature.output());
    let names: Vec<Ident> = (0..types.len()).map(|index| format_ident!("argument_{index}")).collect();
    let call = quote! { fn(#(#types),*) -> #krate::handle::BoxFuture<'static, #output> };
    // At the place of its name, where the compiler shows what is wrong of its future.
    let call_with = |arguments: &[TokenStream]| quote_spanned! { ident.span()=> #ident(#(#arguments),*) };
    let passed: Vec<TokenStream> = names.iter().map(ToTokens::to_token_stream).collect();
    let called = signature.boxed(&quote! { #krate::handle }, &call_with(&passed), &quote! { |answer| answer });
    let registration = settings.registration(&signature, call_with);
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #ident;

        #(#configured)*
        const _: () = {
            #function

            #[automatically_derived]
            impl #krate::handle::Register for #ident {
                fn register(self) -> #krate::handle::Registration {
                    #registration
                }
            }

            // A type cannot be called, but what it dereferences to can.
            #[automatically_derived]
            impl ::core::ops::Deref for #ident {
                type Target = #call;

                fn deref(&self) -> &Self::Target {
                    const CALL: #call = |#(#names),*| #called;
                    &CALL
                }
            }
        };
    })
}
