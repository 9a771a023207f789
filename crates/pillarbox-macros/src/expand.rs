use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Path, Result, parse_quote};

use crate::attribute::Settings;
use crate::field::FieldPath;

/// The implementation of `Event` for the type that `input` declares.
pub(crate) fn event(input: &DeriveInput) -> Result<TokenStream> {
    let settings = Settings::of(input)?;
    let name = settings.name(input)?;
    let krate = settings.krate.clone().unwrap_or_else(|| parse_quote!(::pillarbox));

    let aggregate = settings.aggregate.as_ref().map(|aggregate| {
        quote! { const AGGREGATE: &'static ::core::primitive::str = #aggregate; }
    });
    let codec = settings.codec.path(&krate);
    let content_type = settings.content_type.as_ref().map(|content_type| {
        quote! { const CONTENT_TYPE: &'static ::core::primitive::str = #content_type; }
    });
    // An aggregate is told apart by the key unless said otherwise; without an aggregate type the id would mean nothing.
    let aggregate_id = settings.aggregate_id.as_ref().or(settings.key.as_ref().filter(|_| aggregate.is_some()));
    let methods = [
        text_method(&krate, "aggregate_id", aggregate_id),
        text_method(&krate, "key", settings.key.as_ref()),
        text_method(&krate, "tenant_id", settings.tenant.as_ref()),
        headers_method(&krate, &settings),
    ];

    let mut generics = input.generics.clone();
    let ident = &input.ident;
    if generics.type_params().next().is_some() {
        // What the codec needs is derived under conditions on the parameters; naming the outcome takes them over, whatever
        // they are.
        generics.make_where_clause().predicates.push(parse_quote!(#codec: #krate::event::Encode<Self>));
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #krate::event::Event for #ident #ty_generics #where_clause {
            type Codec = #codec;
            const TYPE: &'static ::core::primitive::str = #name;
            #aggregate
            #content_type
            #(#methods)*
        }
    })
}

fn text_method(krate: &Path, method: &str, field: Option<&FieldPath>) -> Option<TokenStream> {
    let method = syn::Ident::new(method, Span::call_site());
    let text = text(krate, field?);
    Some(quote! {
        fn #method(&self) -> ::core::option::Option<::std::borrow::Cow<'_, ::core::primitive::str>> {
            #[allow(unused_imports)]
            use #krate::__private::FormattedField as _;
            #text
        }
    })
}

fn headers_method(krate: &Path, settings: &Settings) -> Option<TokenStream> {
    if settings.headers.is_empty() {
        return None;
    }
    let names = settings.headers.iter().map(|header| &header.name);
    let texts = settings.headers.iter().map(|header| text(krate, &header.field));
    Some(quote! {
        fn headers(&self) -> #krate::event::Headers {
            #[allow(unused_imports)]
            use #krate::__private::FormattedField as _;
            let mut headers = #krate::event::Headers::new();
            #(
                if let ::core::option::Option::Some(value) = #texts {
                    headers.insert(#names, value);
                }
            )*
            headers
        }
    })
}

/// Reads a field as text. The call stands where the field is named, so that a type that is no text is reported there.
fn text(krate: &Path, field: &FieldPath) -> TokenStream {
    let FieldPath { first, rest } = field;
    let place = quote! { &self.#first #(.#rest)* };
    // The location is the user's; names are resolved as in the rest of the generated code.
    let span = field.span().resolved_at(Span::call_site());
    quote_spanned! { span=> #krate::__private::Field(#place).text() }
}
