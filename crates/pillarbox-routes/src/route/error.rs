use pillarbox_core::publisher::PublishError;

/// A route that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}; {remedy}", place(route, field))]
pub struct RouteError {
    route: String,
    field: &'static str,
    problem: String,
    remedy: String,
}

/// The route and its setting: no setting where several of them make the problem, and nothing where it is about all routes.
fn place(route: &str, field: &str) -> String {
    match field {
        "route" => String::new(),
        "order" => format!("route `{route}`: "),
        field => format!("route `{route}`: setting `{field}` "),
    }
}

impl RouteError {
    pub(crate) fn new(route: &str, field: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { route: route.to_owned(), field, problem: problem.into(), remedy: remedy.into() }
    }

    /// The setting of the route that the error is about.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

/// A destination that does not accept what its routes would send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at {address}, which {routes} send to: {source}")]
pub struct CheckError {
    /// The kind of broker.
    pub kind: &'static str,
    /// The address of the broker, without credentials.
    pub address: String,
    /// The routes that need it.
    pub routes: String,
    /// The error of its check. The text quotes it, so it is no cause besides: hence the `r#`.
    pub r#source: PublishError,
}
