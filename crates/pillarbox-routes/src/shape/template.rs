use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::TargetSyntax;

use super::header_of;

/// Text with places for what an event says of itself: `orders.{event_type}`.
///
/// The places are `{event_id}`, `{event_type}`, `{aggregate_type}`, `{aggregate_id}`, `{tenant_id}`, `{key}` and
/// `{header:NAME}`. `{tenant_id|none}` says `none` where the event has no tenant. `{{` and `}}` are braces.
///
/// In a target, a value is one part: what could change the meaning of the text around it is percent-encoded. As in RFC 6570,
/// `{+key}` stands as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    text: Arc<str>,
    /// Empty: the text as it is.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Place { field: Field, otherwise: Option<Box<str>>, as_it_is: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    EventId,
    EventType,
    AggregateType,
    AggregateId,
    TenantId,
    Key,
    Header(Box<str>),
}

impl Template {
    /// Fills it in with values as they are; the error names what the event does not have.
    pub(crate) fn fill(&self, event: &Delivery) -> Result<Arc<str>, String> {
        self.fill_with(TargetSyntax::Name, |field| field.of(event))
    }

    /// Fills in a target. An empty value is none there: writers in SQL may write it so, and without it the text around would mean another target.
    pub(crate) fn fill_target(&self, event: &Delivery, syntax: TargetSyntax) -> Result<Arc<str>, String> {
        self.fill_with(syntax, |field| field.of(event).filter(|value| !value.is_empty()))
    }

    fn fill_with<'e>(
        &self,
        syntax: TargetSyntax,
        value: impl Fn(&Field) -> Option<&'e str>,
    ) -> Result<Arc<str>, String> {
        if self.parts.is_empty() {
            return Ok(Arc::clone(&self.text));
        }
        let mut text = String::with_capacity(64);
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Place { field, otherwise, as_it_is } => match (value(field), otherwise) {
                    (Some(value), _) if *as_it_is || field.keeps_parts(syntax) => text.push_str(value),
                    (Some(value), _) => text.push_str(&syntax.quote(value)),
                    (None, Some(otherwise)) => text.push_str(otherwise),
                    (None, None) => {
                        return Err(format!(
                            "the event has no {field}, which `{}` asks for; write `{{{field}|…}}` with what to say instead",
                            self.text
                        ));
                    }
                },
            }
        }
        Ok(text.into())
    }

    /// A text of this form: `x` stands for what the event says.
    pub(crate) fn sample(&self) -> String {
        if self.parts.is_empty() {
            return self.text.to_string();
        }
        let text = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Place { .. } => "x".to_owned(),
        };
        self.parts.iter().map(text).collect()
    }

    /// The text before the first place; `None` if there is no place.
    pub(crate) fn prefix(&self) -> Option<&str> {
        match self.parts.first()? {
            Part::Text(text) => Some(text),
            Part::Place { .. } => Some(""),
        }
    }

    /// The template as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
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
        let (place, as_it_is) = place.strip_prefix('+').map_or((place, false), |place| (place, true));
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
        Ok(Self::Place { field, otherwise, as_it_is })
    }
}

impl Field {
    /// The value that an event has; `None` if it has no such thing.
    fn of<'a>(&self, event: &'a Delivery) -> Option<&'a str> {
        match self {
            Self::EventId => Some(event.id().as_str()),
            Self::EventType => Some(event.event_type()),
            Self::AggregateType => Some(event.aggregate_type()),
            Self::AggregateId => event.aggregate_id(),
            Self::TenantId => event.tenant_id(),
            Self::Key => event.key(),
            Self::Header(name) => header_of(event, name),
        }
    }

    /// True for names that programs give, `order.placed`, where parts are meant to be parts. Whatever comes from data is one.
    fn keeps_parts(&self, syntax: TargetSyntax) -> bool {
        matches!(self, Self::EventType | Self::AggregateType) && matches!(syntax, TargetSyntax::Parts(_))
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
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::row::{NewRow, Row};

    use super::*;

    /// An event without a tenant.
    fn order() -> Delivery {
        let event = Envelope::builder("order.placed")
            .aggregate("shop.order/v1", "../a.b?c=100%")
            .header("region", "eu")
            .header("empty", "");
        let event = event.payload_json("{}").build().expect("valid");
        Delivery::detached(Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0)))
    }

    fn filled(text: &str) -> Result<String, String> {
        text.parse::<Template>()?.fill(&order()).map(|text| text.to_string())
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
            ("{header:empty|none}/x", "/x"),
            ("{{literally}}", "{literally}"),
            ("{{{event_type}}}", "{order.placed}"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_value_in_a_target_is_one_part_unless_it_says_otherwise() {
        let (parts, url) = (TargetSyntax::Parts(&['.', '/']), TargetSyntax::Url);
        for (syntax, text, expected) in [
            (TargetSyntax::Name, "x/{aggregate_id}", "x/../a.b?c=100%"),
            (url, "x/{aggregate_id}", "x/..%2Fa.b%3Fc%3D100%25"),
            (url, "x/{+aggregate_id}", "x/../a.b?c=100%"),
            (url, "{event_type}?t={aggregate_type}", "order.placed?t=shop.order%2Fv1"),
            (url, "{tenant_id|a/b}", "a/b"),
            (url, "{header:empty|none}/b", "none/b"),
            (url, "{+tenant_id|a/b}", "a/b"),
            (parts, "x.{aggregate_id}", "x.%2E%2E%2Fa%2Eb?c=100%25"),
            (parts, "x.{+aggregate_id}", "x.../a.b?c=100%"),
            (parts, "{aggregate_type}.{event_type}", "shop.order/v1.order.placed"),
        ] {
            let template: Template = text.parse().expect(text);
            assert_eq!(template.fill_target(&order(), syntax).as_deref(), Ok(expected), "{syntax:?}: {text}");
        }
    }

    #[test]
    fn invalid_placeholders_are_refused_with_the_problem() {
        for (text, expected) in [
            ("{event}", "does not exist"),
            ("{+}", "does not exist"),
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
