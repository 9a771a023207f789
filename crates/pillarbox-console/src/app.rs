use std::ops::Deref;
use std::sync::Arc;

use crate::actions::Jobs;
use crate::auth::{Access, Sessions};
use crate::csrf::Csrf;
use crate::examine::Examinations;
use crate::sample::Samples;
use crate::source::Source;

/// The state that all requests share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) access: Access,
    pub(crate) read_only: bool,
    pub(crate) mask_payloads: bool,
    /// With `{trace_id}` in it.
    pub(crate) trace_link: Option<String>,
    pub(crate) sources: Sources,
    pub(crate) sessions: Sessions,
    pub(crate) csrf: Csrf,
    pub(crate) samples: Arc<Samples>,
    pub(crate) jobs: Jobs,
    pub(crate) examinations: Examinations,
}

/// The sources as they are now.
pub(crate) type Sources = Arc<dyn Fn() -> Vec<Source> + Send + Sync>;

impl App {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
