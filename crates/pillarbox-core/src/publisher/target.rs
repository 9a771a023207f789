use std::borrow::Cow;
use std::fmt::Write as _;

/// The syntax of a publisher's targets. It decides how a value of an event is written into the template of a target, so that
/// the value cannot change what the text around it means.
///
/// ```
/// use pillarbox_core::publisher::TargetSyntax;
///
/// assert_eq!(TargetSyntax::Url.quote("a/b?c"), "a%2Fb%3Fc");
/// assert_eq!(TargetSyntax::Parts(&['.']).quote("acme.admin"), "acme%2Eadmin");
/// assert_eq!(TargetSyntax::Name.quote("a/b"), "a/b");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TargetSyntax {
    /// A name without parts. Values stand as they are, and the publisher refuses what is no name.
    #[default]
    Name,
    /// A URL. A value is one segment of its path: the unreserved characters of RFC 3986 stay, all others are percent-encoded.
    Url,
    /// Parts with these characters between them, or with a meaning of their own. In a value, these and `%` are percent-encoded.
    Parts(&'static [char]),
}

impl TargetSyntax {
    /// A value as one part of a target.
    #[must_use]
    pub fn quote(self, value: &str) -> Cow<'_, str> {
        let stays = |c: char| match self {
            Self::Name => true,
            Self::Url => c.is_ascii_alphanumeric() || "-._~".contains(c),
            Self::Parts(separators) => c != '%' && !separators.contains(&c),
        };
        if value.chars().all(stays) {
            return Cow::Borrowed(value);
        }
        let mut quoted = String::with_capacity(value.len() + 8);
        for c in value.chars() {
            if stays(c) {
                quoted.push(c);
                continue;
            }
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to text does not fail.
                let _ = write!(quoted, "%{byte:02X}");
            }
        }
        Cow::Owned(quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::TargetSyntax::{Name, Parts, Url};

    #[test]
    fn a_value_is_one_part_and_comes_back_by_decoding() {
        for (syntax, value, quoted) in [
            (Name, "a/b.c?d#e%", "a/b.c?d#e%"),
            (Url, "order.placed-1_2~3", "order.placed-1_2~3"),
            (Url, "../x", "..%2Fx"),
            (Url, "..%2foutside", "..%252foutside"),
            (Url, "?x=1", "%3Fx%3D1"),
            (Url, "100%", "100%25"),
            (Url, "a b@c:d;e&f+g#h\\i", "a%20b%40c%3Ad%3Be%26f%2Bg%23h%5Ci"),
            (Url, "Zürich\n", "Z%C3%BCrich%0A"),
            (Parts(&['.', '*']), "a.b*c/ü", "a%2Eb%2Ac/ü"),
            (Parts(&['/', '+', '#']), "a/b+c#d.e", "a%2Fb%2Bc%23d.e"),
            (Parts(&['.']), "a%2Eb", "a%252Eb"),
            (Url, "", ""),
        ] {
            assert_eq!(syntax.quote(value), quoted, "{syntax:?}: {value}");
        }
    }
}
