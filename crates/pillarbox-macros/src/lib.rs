//! The macros of [Pillarbox](https://docs.rs/pillarbox): `#[derive(Event)]`, `#[handler]` and `#[handlers]`.
//!
//! Use them through the `pillarbox` crate, which exports them: the generated code names that crate.

mod attribute;
mod codec;
mod expand;
mod field;
mod function;
mod handler;
mod methods;
mod name;
mod settings;
mod signature;
mod suggest;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, ItemImpl, parse_macro_input};

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
/// | `codec` | `json`, `prost`, `raw`, or the path of a type | how the payload is written and read; default: `json` |
/// | `content_type` | string, at most 128 characters | the media type of the payload, where it is closer than the codec's |
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
/// # Codecs
///
/// `json` needs `Serialize`, and `Deserialize` for handlers. `prost` needs `prost::Message`, and the feature `prost` of
/// `pillarbox`. `raw` is for types that are bytes already: it needs `AsRef<[u8]>`, and `From<Vec<u8>>` or `TryFrom` for
/// handlers. Any other path is a type of yours that implements `Encode`, and `Decode` for handlers.
///
/// # Limits
///
/// What is known now is checked now: names that are empty, too long or contain NUL do not compile. What comes from fields
/// is checked when the event is built, before any SQL: at most 255 characters for a key, 128 for an aggregate id, 64 for
/// a tenant. A key that is also the aggregate id, by being the default of it, must keep to the 128.
///
/// # Enums and generics
///
/// An enum has one name for all its variants, and no fields that all of them share, so it takes `name`, `aggregate`,
/// `codec`, `content_type` and `crate` only. Generic types need no extra bounds for their payload; a type parameter that is read as text needs
/// `Display` on the type's own declaration.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::event(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes an async function a handler that an outbox can be given with all that belongs to it: `outbox.handler(send_receipt)`.
///
/// ```text
/// #[handler(name = "mailer", retry = Retry::fixed(Duration::from_secs(5)).max_retries(3), on_dead = tell_support)]
/// async fn send_receipt(event: OrderPlaced, delivery: Delivery) -> Result<(), MailError> { … }
///
/// #[handler(event = "order.cancelled", aggregate = "order")]
/// async fn refund(delivery: Delivery) -> Result<(), BankError> { … }
/// ```
///
/// | Setting | Value | Meaning |
/// |---|---|---|
/// | `event` | string, at most 128 characters | the event type, for a function of `(Delivery)`; a typed event names its own |
/// | `aggregate` | string, at most 64 characters | the aggregate type beside it; default: events that belong to none |
/// | `name` | string, at most 128 characters | the name of one of several handlers of the same events; the same in every release |
/// | `batch` | number from 1 to 10,000 | takes up to so many events at once; for a function of `(Vec<Delivery>)` |
/// | `accepts` | expression, a closure of `&Envelope` | asked before an event is written: where it says false, no row is written for this handler; default: all events |
/// | `retry` | expression, a `Retry` | how its failures are met; default: as the outbox has it |
/// | `timeout` | expression, a `Duration` or `None` | how long a call may take; default: as the outbox has it, 5 minutes |
/// | `concurrency` | number, at least 1 | its calls that run at once on a node; default: no limit of its own |
/// | `rate` | expression, a `Rate` | its events that begin in a time on a node; default: no limit |
/// | `fallback` | expression, a `Fallback` | decides about an event once the function has failed for good; default: as the outbox has it |
/// | `on_dead` | expression, an `OnDead` | observes events that go DEAD; default: as the outbox has it |
/// | `crate` | path | where `pillarbox` is found if not under that name |
///
/// Expressions are evaluated when the handler is registered.
///
/// The function is called as before, `send_receipt(event, delivery).await`. What bears its name is now a value, which
/// dereferences to a function that returns a boxed future; where a function itself is asked for, pass `*send_receipt`. It may be a function
/// within another one. For methods, see [`handlers`](macro@handlers).
#[proc_macro_attribute]
pub fn handler(settings: TokenStream, function: TokenStream) -> TokenStream {
    let settings = parse_macro_input!(settings as handler::Settings);
    let function = parse_macro_input!(function as ItemFn);
    function::handler(&settings, function).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the methods of a type handlers of its value, which they share as their state: those that have the attribute `#[handler]`, with
/// the settings of [`handler`](macro@handler).
///
/// ```text
/// struct Mailer { smtp: SmtpClient }
///
/// #[handlers]
/// impl Mailer {
///     #[handler(name = "mailer", retry = Retry::fixed(Duration::from_secs(5)).max_retries(3))]
///     async fn send_receipt(&self, event: OrderPlaced, delivery: Delivery) -> Result<(), MailError> { … }
///
///     #[handler(event = "order.cancelled", aggregate = "order")]
///     async fn tell(&self, delivery: Delivery) -> Result<(), MailError> { … }
/// }
/// // outbox.handlers(Mailer { smtp })
/// ```
///
/// A value of the type is a list of its handlers, for `outbox.handlers(…)`. Where the program needs the value itself, too, it shares
/// it: `outbox.handlers(Arc::clone(&mailer).handlers())`. The methods stay what they are, and are called as before.
///
/// A method takes its state as `&self` or `self: Arc<Self>`, since several events are handled at once; what changes is behind a `Mutex`. One
/// without a receiver can be a handler, too. The type is `Send`, `Sync` and `'static`. It has one impl block with this attribute, whose
/// only setting is `crate`, as that of `handler`.
#[proc_macro_attribute]
pub fn handlers(settings: TokenStream, block: TokenStream) -> TokenStream {
    let settings = parse_macro_input!(settings as methods::Common);
    let block = parse_macro_input!(block as ItemImpl);
    methods::handlers(&settings, block).unwrap_or_else(syn::Error::into_compile_error).into()
}
