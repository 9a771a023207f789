use syn::parse::{Parse, ParseStream};
use syn::{LitStr, Path, Result, parse_quote};

use crate::suggest;

/// The codecs that have a short name, and the types behind them.
const KNOWN: [&str; 3] = ["json", "prost", "raw"];

/// The codec that follows `codec =`.
#[derive(Default)]
pub(crate) enum Codec {
    #[default]
    Json,
    Prost,
    Raw,
    /// A type of the user's.
    Own(Path),
}

impl Codec {
    /// The type, seen from the user's code.
    pub(crate) fn path(&self, krate: &Path) -> Path {
        match self {
            Self::Json => parse_quote!(#krate::event::codecs::Json),
            Self::Prost => parse_quote!(#krate::event::codecs::Prost),
            Self::Raw => parse_quote!(#krate::event::codecs::Raw),
            Self::Own(path) => path.clone(),
        }
    }
}

impl Parse for Codec {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(LitStr) {
            return Err(input.error(format!("a codec is a name without quotes: {}, or a type of yours", known())));
        }
        let path: Path = input.parse()?;
        let Some(name) = path.get_ident().map(ToString::to_string) else { return Ok(Self::Own(path)) };
        match name.as_str() {
            "json" => Ok(Self::Json),
            "prost" => Ok(Self::Prost),
            "raw" => Ok(Self::Raw),
            // Types are written in capitals, so this was meant to be one of ours.
            unknown if unknown.starts_with(|first: char| first.is_lowercase()) => {
                let meant = suggest::did_you_mean(unknown, KNOWN);
                let problem = format!("there is no codec `{unknown}`; {meant}take {}, or a type of yours", known());
                Err(syn::Error::new_spanned(&path, problem))
            }
            _ => Ok(Self::Own(path)),
        }
    }
}

fn known() -> String {
    suggest::list(KNOWN)
}
