use clap::Args;
use pillarbox::maintain::{Attributes, AuditedAction};

/// The attributes of the events that a command is about. They have to match all options.
#[derive(Debug, Clone, Args)]
pub(crate) struct AttributeArgs {
    /// Only events of this type.
    #[arg(long, value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events of this aggregate type; `__GLOBAL__` for events without an aggregate.
    #[arg(long, value_name = "TYPE")]
    aggregate_type: Option<String>,
    /// Only events of this tenant.
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only rows for the handler of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) handler: Option<String>,
    /// Only events of this key: the ordering key, or the aggregate id where an event has none.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl From<AttributeArgs> for Attributes {
    fn from(matching: AttributeArgs) -> Self {
        let AttributeArgs { event_type, aggregate_type, tenant, handler, key } = matching;
        Self { event_type, aggregate_type, tenant_id: tenant, handler, key }
    }
}

/// The person or program that changes events.
#[derive(Debug, Clone, Args)]
pub(crate) struct Actor {
    /// The name under which the audit table records this, instead of that of the operating system's user.
    #[arg(long = "as", value_name = "NAME", value_parser = person)]
    name: Option<String>,
}

impl Actor {
    /// The name for the audit table.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(user)
    }
}

/// The name of a person or program, as the audit table keeps it: whole, on one line.
pub(crate) fn person(name: &str) -> Result<String, String> {
    let characters = name.chars().count();
    if characters == 0 || name.chars().any(char::is_control) {
        return Err("it is empty, or has control characters in it; write a name on one line".to_owned());
    }
    if characters > AuditedAction::WHO_CHARACTERS {
        return Err(format!("it has {characters} characters; shorten it to {}", AuditedAction::WHO_CHARACTERS));
    }
    Ok(name.to_owned())
}

/// The name of the operating system's user, whatever the environment says.
pub(crate) fn user() -> String {
    whoami::username().unwrap_or_else(|_| "unknown".to_owned())
}
