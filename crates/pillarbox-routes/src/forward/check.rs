use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Publisher};
use tokio::time::{Instant, sleep, timeout_at};

use super::Forwarder;
use super::forwarder::Probing;
use crate::guard::Called;
use crate::route::{CheckError, Line, Sending};

/// How soon a destination is asked again that is not there when events begin to be passed on.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is looked for routes whose pause is over and that no event has tried out.
const LOOK: Duration = Duration::from_secs(1);

/// What a broker is asked for, and on whose behalf.
struct Asked<'a> {
    publisher: &'a Arc<dyn Publisher>,
    targets: Vec<String>,
    lines: Vec<(&'a Line, &'a Sending)>,
}

impl Asked<'_> {
    fn error(&self, source: PublishError) -> CheckError {
        CheckError {
            kind: self.publisher.info().kind,
            address: self.publisher.info().address.clone(),
            routes: self.lines.iter().map(|(line, _)| format!("`{}`", line.name)).collect::<Vec<_>>().join(", "),
            source,
        }
    }

    /// Asks until there is an answer, for as long as there is patience.
    async fn within(&self, patience: Duration) -> Result<(), PublishError> {
        let deadline = Instant::now() + patience;
        let mut last = None;
        loop {
            match timeout_at(deadline, self.publisher.check(&self.targets)).await {
                Ok(Err(error)) if error.kind() == PublishErrorKind::Unavailable => {
                    if Instant::now() + AGAIN >= deadline {
                        return Err(error);
                    }
                    last = Some(error);
                }
                Ok(answer) => return answer,
                Err(_elapsed) => {
                    let silent = || PublishError::unavailable(format!("it has not answered within {patience:?}"));
                    return Err(last.unwrap_or_else(silent));
                }
            }
            sleep(AGAIN).await;
        }
    }
}

impl Forwarder {
    /// Connects to every destination and verifies that what its routes name is there. Targets that depend on the event are not
    /// asked for.
    ///
    /// # Errors
    /// What each destination that is not as it has to be said; destinations that merely do not answer are among them, with an
    /// error of kind [`Unavailable`](PublishErrorKind::Unavailable).
    pub async fn check(&self) -> Result<(), Vec<CheckError>> {
        let checks = self.asked().into_iter().map(|asked| async move {
            let answer = asked.publisher.check(&asked.targets).await;
            answer.map_err(|error| asked.error(error))
        });
        let errors: Vec<CheckError> = join_all(checks).await.into_iter().filter_map(Result::err).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// As [`check`](Self::check), before events are passed on, and with patience of its own: routes whose destination does not
    /// answer within it begin paused, so that they hold up no other. [`watch`](Self::watch) asks on.
    ///
    /// # Errors
    /// What each destination said that has answered and refuses what its routes would send.
    pub async fn begin(&self, patience: Duration) -> Result<(), Vec<CheckError>> {
        let asked = self.asked();
        let answers = join_all(asked.iter().map(|asked| asked.within(patience))).await;
        let mut wrong = Vec::new();
        for (asked, error) in asked.iter().zip(answers).filter_map(|(asked, answer)| Some((asked, answer.err()?))) {
            if error.kind() != PublishErrorKind::Unavailable {
                wrong.push(asked.error(error));
                continue;
            }
            for (line, sending) in &asked.lines {
                self.0.learn(line, sending, Instant::now(), refused(&error));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Tries out, by a check, the destinations of paused routes for which no event does: so that a route goes on by itself where
    /// none is left, or none has come yet. It never ends; drop it when the outbox stops.
    pub async fn watch(&self) {
        let lines = self.0.lines.iter().filter_map(|line| Some((line, line.sending.as_ref()?)));
        join_all(lines.map(|(line, sending)| async move {
            loop {
                sleep(LOOK).await;
                if !sending.circuit().probe_unasked(Instant::now()) {
                    continue;
                }
                let _probing = Probing(sending);
                let targets: Vec<String> = sending.target.fixed().map(str::to_owned).into_iter().collect();
                let called = match sending.publisher.check(&targets).await {
                    Ok(()) => Called::Answered,
                    Err(error) => refused(&error),
                };
                self.0.learn(line, sending, Instant::now(), called);
            }
        }))
        .await;
        pending::<()>().await;
    }

    /// Each broker once, with all that its routes would send to.
    fn asked(&self) -> Vec<Asked<'_>> {
        let mut all: Vec<Asked<'_>> = Vec::new();
        for line in &self.0.lines {
            let Some(sending) = &line.sending else { continue };
            let target = sending.target.fixed().map(str::to_owned);
            match all.iter_mut().find(|asked| Arc::ptr_eq(asked.publisher, &sending.publisher)) {
                Some(asked) => {
                    asked.targets.extend(target);
                    asked.lines.push((line, sending));
                }
                None => all.push(Asked {
                    publisher: &sending.publisher,
                    targets: target.into_iter().collect(),
                    lines: vec![(line, sending)],
                }),
            }
        }
        all
    }
}

fn refused(error: &PublishError) -> Called {
    Called::Refused { problem: error.to_string().into(), after: error.delay() }
}
