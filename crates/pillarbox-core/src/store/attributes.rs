/// The attributes of an event that a filter asks for: an event matches if it has every one that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Of this event type.
    pub event_type: Option<String>,
    /// Of this aggregate type. `__GLOBAL__` also matches rows that name none.
    pub aggregate_type: Option<String>,
    /// Of this tenant.
    pub tenant_id: Option<String>,
    /// For the handler of this name.
    pub handler: Option<String>,
    /// Of this key: the ordering key, or the aggregate id where a row has none.
    pub key: Option<String>,
}

impl Attributes {
    /// The texts in the order in which the statements of stores take them.
    #[must_use]
    pub fn texts(&self) -> [&Option<String>; 5] {
        let Self { event_type, aggregate_type, tenant_id, handler, key } = self;
        [event_type, aggregate_type, tenant_id, handler, key]
    }
}

/// Gives a filter the methods that set its attributes.
macro_rules! attribute_methods {
    ($filter:ident) => {
        impl $filter {
            /// Only events of this event type.
            #[must_use]
            pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
                self.attributes.event_type = Some(event_type.into());
                self
            }

            /// Only events of this aggregate type. `__GLOBAL__` also matches rows that name none.
            #[must_use]
            pub fn aggregate_type(mut self, aggregate_type: impl Into<String>) -> Self {
                self.attributes.aggregate_type = Some(aggregate_type.into());
                self
            }

            /// Only events of this tenant.
            #[must_use]
            pub fn tenant(mut self, tenant_id: impl Into<String>) -> Self {
                self.attributes.tenant_id = Some(tenant_id.into());
                self
            }

            /// Only rows for the handler of this name.
            #[must_use]
            pub fn handler(mut self, handler: impl Into<String>) -> Self {
                self.attributes.handler = Some(handler.into());
                self
            }

            /// Only events of this key: the ordering key, or the aggregate id where a row has none.
            #[must_use]
            pub fn key(mut self, key: impl Into<String>) -> Self {
                self.attributes.key = Some(key.into());
                self
            }
        }
    };
}

pub(super) use attribute_methods;
