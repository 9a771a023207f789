use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use pillarbox_core::context::{BUILT_IN, ContextProvider};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, Headers};
use pillarbox_core::handle::BoxFuture;
use pillarbox_core::throttle::Throttle;
use tracing::{Instrument as _, Span};

/// All context providers of an outbox.
#[derive(Clone, Default)]
pub(crate) struct Contexts {
    registered: Vec<Arc<dyn ContextProvider>>,
    skipped: Arc<Throttle>,
}

impl Contexts {
    pub(crate) fn push(&mut self, provider: impl ContextProvider) {
        self.registered.push(Arc::new(provider));
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &dyn ContextProvider> {
        self.registered.iter().map(|provider| &**provider).chain(BUILT_IN)
    }

    /// Adds to each event what the providers have to say about the writer.
    pub(crate) fn capture(&self, events: &mut [Envelope]) {
        for provider in self.all() {
            for event in &mut *events {
                let added = match catch_unwind(AssertUnwindSafe(|| provider.capture(event))) {
                    Ok(captured) => captured.and_then(|headers| event.add_headers(headers).map_err(Into::into)),
                    Err(_panic) => Err(BoxError::from("it panicked")),
                };
                if let Err(error) = added {
                    self.skip(provider, "event is written without its headers", &*error);
                }
            }
        }
    }

    /// Runs the handler of events that carry `headers`, in a span, within every provider's context.
    ///
    /// The span is made inside of the contexts, since a tracing system may take its parent from there.
    pub(crate) async fn around<'h, T: Send>(
        &self,
        headers: impl Iterator<Item = &'h Headers>,
        span: impl FnOnce() -> Span + Send,
        call: impl Future<Output = T> + Send,
    ) -> T {
        if self.all().next().is_none() {
            return call.instrument(span()).await;
        }
        let headers: Vec<&Headers> = headers.collect();
        let mut call = Box::pin(async {
            let span = span();
            self.relate(&span, &headers);
            call.instrument(span).await
        });
        let mut answer = None;
        let mut within: BoxFuture<'_, ()> = Box::pin(async { answer = Some((&mut call).await) });
        for provider in self.all().rev() {
            within = Box::pin(self.restored(provider, &headers, within));
        }
        within.await;
        match answer {
            Some(answer) => answer,
            None => call.await,
        }
    }

    /// Runs `call` within a provider's context; without it, if the provider panics or drops the call.
    ///
    /// The provider gets no more than a loan of the call, so that whatever it does, the call goes on from where it was.
    async fn restored(&self, provider: &dyn ContextProvider, headers: &[&Headers], mut call: BoxFuture<'_, ()>) {
        let mut ended = false;
        let lent: BoxFuture<'_, ()> = Box::pin(async {
            (&mut call).await;
            ended = true;
        });
        let within = AssertUnwindSafe(async {
            match headers {
                [headers] => provider.restore(headers, lent).await,
                _ => provider.restore_batch(headers, lent).await,
            }
        });
        let panicked = within.catch_unwind().await.is_err();
        if panicked || !ended {
            let error = if panicked { "it panicked" } else { "it did not run the handler" };
            self.skip(provider, "handler runs without its context", error);
        }
        if !ended {
            call.await;
        }
    }

    fn relate(&self, span: &Span, headers: &[&Headers]) {
        if span.is_disabled() {
            return;
        }
        for provider in self.all() {
            if catch_unwind(AssertUnwindSafe(|| provider.relate(span, headers))).is_err() {
                self.skip(provider, "handler's span knows nothing of its context", "it panicked");
            }
        }
    }

    fn skip(&self, provider: &dyn ContextProvider, consequence: &'static str, error: impl fmt::Display) {
        if let Some(times) = self.skipped.report(1) {
            let name = catch_unwind(AssertUnwindSafe(|| provider.name())).unwrap_or("a provider whose name panics");
            tracing::warn!(provider = name, %error, times, "context provider skipped: the {consequence}");
        }
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} context providers", self.all().count())
    }
}
