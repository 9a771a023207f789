//! The settings in an attribute: `name = value`, separated by commas.

use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Error, Ident, Lit, Result, Token};

use crate::suggest;

/// Reads a list of settings, the value of each by `read`. None of them may be among those that were `given` already; errors show
/// how one is written by the `example`.
pub(crate) fn read_each(
    list: ParseStream<'_>,
    given: &mut Vec<Ident>,
    example: &str,
    mut read: impl FnMut(&Ident) -> Result<()>,
) -> Result<()> {
    while !list.is_empty() {
        if list.peek(Lit) || !list.peek(Ident::peek_any) {
            return Err(list.error(format!("say which setting this is, such as {example}")));
        }
        let setting = list.call(Ident::parse_any)?;
        if given.contains(&setting) {
            return Err(Error::new(setting.span(), format!("`{setting}` is given twice; keep one of them")));
        }
        read(&setting)?;
        given.push(setting);
        if list.is_empty() {
            break;
        }
        list.parse::<Token![,]>()?;
    }
    Ok(())
}

/// Goes past the `=` of `setting = value`.
pub(crate) fn value<'a>(setting: &Ident, list: ParseStream<'a>) -> Result<ParseStream<'a>> {
    if !list.peek(Token![=]) {
        return Err(Error::new(setting.span(), format!("`{setting}` needs a value: {setting} = …")));
    }
    list.parse::<Token![=]>()?;
    Ok(list)
}

/// The error of a setting that is none of the `known` ones.
pub(crate) fn unknown<const N: usize>(setting: &Ident, known: [&str; N]) -> Error {
    let meant = suggest::did_you_mean(&setting.to_string(), known);
    let problem = format!("there is no setting `{setting}`; {meant}the settings are {}", suggest::list(known));
    Error::new(setting.span(), problem)
}
