//! The derive macro of [Pillarbox](https://docs.rs/pillarbox) events.
//!
//! Use it through the `pillarbox` crate, which exports it beside the trait: the generated code names that crate.

mod attribute;
mod expand;
mod field;
mod name;
mod suggest;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Event` for a struct or an enum, from one `#[event(…)]` attribute on the type.
///
/// ```text
/// #[derive(Serialize, Deserialize, Event)]
/// #[event(name = "order.placed", aggregate = "order", key = order_id, headers("channel" = channel))]
/// struct OrderPlaced { order_id: String, channel: Option<String>, total_cents: i64 }
/// ```
///
/// A string is a name and stays as it is; an identifier is a field, whose value is read whenever an event is written.
///
/// | Setting | Value | Meaning |
/// |---|---|---|
/// | `name` | string, required, at most 128 characters | the event type; the same in every release of your service |
/// | `aggregate` | string, at most 64 characters | the kind of thing the event happens to; default: none, `__GLOBAL__` in the table |
/// | `aggregate_id` | field | which thing it happened to; default: the field of `key` if `aggregate` is given |
/// | `key` | field | the ordering key; default: the aggregate id |
/// | `tenant` | field | the tenant it belongs to |
/// | `headers("…" = field, …)` | strings and fields | headers taken from fields |
/// | `crate` | path | where `pillarbox` is found if not under that name, such as `crate = my_prelude::pillarbox` |
///
/// The attribute may be written several times; each setting may be given once.
///
/// # Fields
///
/// A field is named as after `self.`: `order_id`, `customer.id`, and `0` or `0.id` in a tuple struct. Its type is
/// anything that implements `Display`, or an `Option` of that: strings, numbers, `Uuid`, identifiers of your own.
/// `None` leaves the key, the tenant or the header out. Method calls are not accepted: implement `Event` by hand for
/// what needs computing.
///
/// # Limits
///
/// What is known now is checked now: names that are empty, too long or contain NUL do not compile. What comes from fields
/// is checked when the event is built, before any SQL: at most 255 characters for a key, 128 for an aggregate id, 64 for
/// a tenant. A key that is also the aggregate id, by being the default of it, must keep to the 128.
///
/// # Enums and generics
///
/// An enum has one name for all its variants, and no fields that all of them share, so it takes `name`, `aggregate` and
/// `crate` only. Generic types need no extra bounds for their payload; a type parameter that is read as text needs
/// `Display` on the type's own declaration.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::event(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
