//! The settings of `#[handler(…)]`, and the registration that they make of a function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, Ident, LitStr, Path, Result, parse_quote};

use crate::name;
use crate::settings::{read_each, unknown, value};
use crate::signature::Signature;

/// Everything that can stand in `#[handler(…)]`.
const SETTINGS: [&str; 12] = [
    "event",
    "aggregate",
    "name",
    "batch",
    "accepts",
    "retry",
    "timeout",
    "concurrency",
    "rate",
    "fallback",
    "on_dead",
    "crate",
];

/// The settings in a `#[handler(…)]` attribute.
#[derive(Default)]
pub(crate) struct Settings {
    event: Option<LitStr>,
    aggregate: Option<LitStr>,
    name: Option<LitStr>,
    batch: Option<Expr>,
    accepts: Option<Expr>,
    retry: Option<Expr>,
    timeout: Option<Expr>,
    concurrency: Option<Expr>,
    rate: Option<Expr>,
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
            "accepts" => self.accepts = Some(value(setting, list)?.parse()?),
            "retry" => self.retry = Some(value(setting, list)?.parse()?),
            "timeout" => self.timeout = Some(value(setting, list)?.parse()?),
            "concurrency" => self.concurrency = Some(value(setting, list)?.parse()?),
            "rate" => self.rate = Some(value(setting, list)?.parse()?),
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

    /// The kind of handler that it asks for.
    pub(crate) fn kind(&self) -> Kind {
        match (&self.event, &self.batch) {
            (Some(_), Some(_)) => Kind::Batch,
            (Some(_), None) => Kind::Named,
            (None, _) => Kind::Typed,
        }
    }

    /// The path of the crate.
    pub(crate) fn krate(&self) -> Path {
        self.krate.clone().unwrap_or_else(|| parse_quote!(::pillarbox))
    }

    /// Takes the path of the crate from around it, unless it names one.
    pub(crate) fn within(mut self, krate: Option<&Path>) -> Self {
        self.krate = self.krate.or_else(|| krate.cloned());
        self
    }

    /// The expression that makes a registration of a function, which is called by what `call` makes of its arguments.
    pub(crate) fn registration(
        &self,
        signature: &Signature<'_>,
        call: impl FnOnce(&[TokenStream]) -> TokenStream,
    ) -> TokenStream {
        let krate = self.krate();
        let handle = quote! { #krate::handle };
        let event_kind = self.event.as_ref().map(|event| match &self.aggregate {
            Some(aggregate) => quote! { (#aggregate, #event) },
            None => quote! { #event },
        });
        let on = match (self.kind(), &self.batch) {
            (Kind::Typed, _) => {
                let (event, handler) = signature.typed(&handle, call);
                quote! {{ let (event_kind, read) = #event; #handle::on_type(event_kind, #handle::part::typed(read, #handler)) }}
            }
            (Kind::Batch, Some(batch)) => {
                let handler = signature.batch(&handle, call);
                quote! { #handle::on_batch(#event_kind, #batch, #handle::part::batch(#handler)) }
            }
            (_, _) => {
                let handler = signature.named(&handle, call);
                quote! { #handle::on_type(#event_kind, #handle::part::handler(#handler)) }
            }
        };
        let name = self.name.as_ref().map(|name| quote! { .named(#name) });
        let retry = self.retry.as_ref().map(|retry| quote! { .retry(#retry) });
        let accepts = self.accepts.as_ref().map(|accepts| quote! { .accepts(#accepts) });
        let fallback = self.fallback.as_ref().map(|fallback| quote! { .fallback(#fallback) });
        let on_dead = self.on_dead.as_ref().map(|observer| quote! { .on_dead(#observer) });
        let timeout = self.timeout.as_ref().map(|timeout| quote! { .timeout(#timeout) });
        let concurrency = self.concurrency.as_ref().map(|calls| quote! { .concurrency(#calls) });
        let rate = self.rate.as_ref().map(|rate| quote! { .rate(#rate) });
        quote! { #on #name #accepts #retry #timeout #concurrency #rate #fallback #on_dead }
    }
}

/// The kinds of handlers, by what they are called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A typed event, and perhaps its delivery.
    Typed,
    /// The delivery of an event that the attribute names.
    Named,
    /// Many deliveries of it.
    Batch,
}
