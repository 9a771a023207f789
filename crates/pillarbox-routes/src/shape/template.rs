use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;

/// Text with places for what an event says of itself: `orders.{event_type}`.
///
/// The places are `{event_id}`, `{event_type}`, `{aggregate_type}`, `{aggregate_id}`, `{tenant_id}`, `{key}` and
/// `{header:NAME}`. `{tenant_id|none}` says `none` where the event has no tenant. `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    text: Arc<str>,
    /// Empty: the text as it is.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Place { field: Field, otherwise: Option<Box<str>> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    EventId,
    EventType,
    AggregateType,
    AggregateId,
    TenantId,
    Key,
    Header(Box<str>),
}

/// What a template asks of an event.
pub(crate) trait Fill {
    /// `None` if the event has no such thing.
    fn value(&self, field: &Field) -> Option<&str>;
}

impl Fill for Delivery {
    fn value(&self, field: &Field) -> Option<&str> {
        match field {
            Field::EventId => Some(self.id().as_str()),
            Field::EventType => Some(self.event_type()),
            Field::AggregateType => Some(self.aggregate_type()),
            Field::AggregateId => self.aggregate_id(),
            Field::TenantId => self.tenant_id(),
            Field::Key => self.key(),
            Field::Header(name) => self.headers().get(name),
        }
    }
}

impl Template {
    /// Fills it in; the error names what the event does not have.
    pub(crate) fn fill(&self, event: &impl Fill) -> Result<Arc<str>, String> {
        if self.parts.is_empty() {
            return Ok(Arc::clone(&self.text));
        }
        let mut text = String::with_capacity(64);
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Place { field, otherwise } => {
                    let value = event.value(field).or(otherwise.as_deref());
                    text.push_str(value.ok_or_else(|| {
                        format!("the event has no {field}, which `{}` asks for; write `{{{field}|…}}` with what to say instead", self.text)
                    })?);
                }
            }
        }
        Ok(text.into())
    }

    /// The text, if it is the same for every event.
    pub(crate) fn fixed(&self) -> Option<&str> {
        self.parts.is_empty().then_some(&*self.text)
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
            } else if brace == "}" {
                return Err("has a `}` that closes nothing; write `}}` for a brace".to_owned());
            } else {
                let (place, after) =
                    rest.split_once('}').ok_or("has a `{` that is not closed; write `{{` for a brace")?;
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal).into()));
                }
                parts.push(place.parse()?);
                rest = after;
            }
        }
        literal.push_str(rest);
        if parts.is_empty() {
            return Ok(Self { text: literal.into(), parts });
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Ok(Self { text: text.into(), parts })
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(place: &str) -> Result<Self, String> {
        let (name, otherwise) = match place.split_once('|') {
            Some((name, otherwise)) => (name, Some(otherwise.into())),
            None => (place, None),
        };
        let field = match name {
            "event_id" => Field::EventId,
            "event_type" => Field::EventType,
            "aggregate_type" => Field::AggregateType,
            "aggregate_id" => Field::AggregateId,
            "tenant_id" => Field::TenantId,
            "key" => Field::Key,
            name => match name.strip_prefix("header:") {
                Some(header) if !header.is_empty() => Field::Header(header.into()),
                _ => {
                    return Err(format!(
                        "has a place `{{{name}}}`, which does not exist; there are {{event_id}}, {{event_type}}, {{aggregate_type}}, {{aggregate_id}}, {{tenant_id}}, {{key}} and {{header:NAME}}"
                    ));
                }
            },
        };
        Ok(Self::Place { field, otherwise })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventId => f.write_str("event_id"),
            Self::EventType => f.write_str("event_type"),
            Self::AggregateType => f.write_str("aggregate_type"),
            Self::AggregateId => f.write_str("aggregate_id"),
            Self::TenantId => f.write_str("tenant_id"),
            Self::Key => f.write_str("key"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Order;
    impl Fill for Order {
        fn value(&self, field: &Field) -> Option<&str> {
            match field {
                Field::EventType => Some("order.placed"),
                Field::Header(name) if &**name == "region" => Some("eu"),
                _ => None,
            }
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        text.parse::<Template>()?.fill(&Order).map(|text| text.to_string())
    }

    #[test]
    fn places_are_filled_and_braces_stay() {
        for (text, expected) in [
            ("orders", "orders"),
            ("", ""),
            ("a.{event_type}.b", "a.order.placed.b"),
            ("{event_type}", "order.placed"),
            ("{header:region}/{tenant_id|none}", "eu/none"),
            ("{tenant_id|}x", "x"),
            ("{{literally}}", "{literally}"),
            ("{{{event_type}}}", "{order.placed}"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (text, expected) in [
            ("{event}", "does not exist"),
            ("{}", "does not exist"),
            ("{header:}", "does not exist"),
            ("{event_type", "not closed"),
            ("a}b", "closes nothing"),
            ("x.{tenant_id}", "the event has no tenant_id"),
        ] {
            assert!(filled(text).is_err_and(|error| error.contains(expected)), "{text}");
        }
    }
}
