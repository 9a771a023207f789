//! The part that all filters have: the attributes of a row.

use pillarbox_core::store::Attributes;
use tokio_postgres::types::Type;

use crate::session::Param;

/// The first values of a statement that asks for attributes.
pub(super) fn attributes(attributes: &Attributes) -> Vec<Param<'_>> {
    attributes.texts().into_iter().map(|text| (text as _, Type::TEXT)).collect()
}

/// True if the attributes name text that no row has, since the server refuses it: with a NUL in it.
pub(super) fn are_impossible(attributes: &Attributes) -> bool {
    attributes.texts().into_iter().flatten().any(|text| text.contains('\0'))
}
