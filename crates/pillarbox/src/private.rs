//! The items that the code of `#[derive(Event)]` uses. Not part of the public interface.

use std::borrow::{Borrow, Cow};

/// A field that is read as text.
///
/// What is a string already is lent, by the inherent method; everything else is formatted by that of [`FormattedField`].
/// The inherent one comes first where both apply, which no single trait could express: a string is also formattable.
#[derive(Debug)]
pub struct Field<'a, T: ?Sized>(pub &'a T);

impl<'a, T: Borrow<str> + ?Sized> Field<'a, T> {
    /// The string itself.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self.0.borrow()))
    }
}

/// Reads a field that is no string.
pub trait FormattedField<'a, T: ?Sized> {
    /// Its text; `None` when it holds nothing.
    fn text<Kind>(self) -> Option<Cow<'a, str>>
    where
        T: AsText<Kind>;
}

impl<'a, T: ?Sized> FormattedField<'a, T> for Field<'a, T> {
    fn text<Kind>(self) -> Option<Cow<'a, str>>
    where
        T: AsText<Kind>,
    {
        self.0.as_text()
    }
}

/// A value that becomes a key, an id or a header. `Kind` keeps the two implementations apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` cannot be read as text",
    label = "expected a type that implements `Display`, or an `Option` of one",
    note = "implement `Display` for it, name another field, or implement `Event` by hand"
)]
pub trait AsText<Kind> {
    /// Its text; `None` when it holds nothing.
    fn as_text(&self) -> Option<Cow<'_, str>>;
}

/// The kind of values that are always there.
#[derive(Debug)]
pub struct Always;

/// The kind of values that may be missing.
#[derive(Debug)]
pub struct Sometimes;

impl<T: ToString + ?Sized> AsText<Always> for T {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.to_string()))
    }
}

// The compiler would propose `Option` for every type that is no text.
#[diagnostic::do_not_recommend]
impl<T: ToString> AsText<Sometimes> for Option<T> {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(|value| Cow::Owned(value.to_string()))
    }
}
