mod configured {
    use crate::shop::*;

    async fn start() -> Result<(), BoxError> {
        //~ docs/configuration.md ~ let outbox = pillarbox::config::load(
        Ok(())
    }
}

mod with_a_store {
    use crate::shop::*;
    use pillarbox::Inbox;

    async fn start() -> Result<(), BoxError> {
        //~ docs/configuration.md ~ let inbox = Inbox::new(store.clone(), "billing")?;
        Ok(())
    }
}

mod prometheus {
    //~ docs/metrics.md ~ use metrics_exporter_prometheus::
}

mod health {
    use pillarbox::Outbox;

    fn health(outbox: &Outbox) {
        //~ docs/metrics.md ~ let health = outbox.health();
    }
}

mod pages {
    use crate::shop::*;
    use axum::Router;
    use pillarbox::axum::{Metrics, Pages};
    use pillarbox::config::Settings;

    async fn serve(settings: Settings) -> Result<(), BoxError> {
        //~ docs/metrics.md ~ let metrics = Metrics::install()?;
        let _: (Router, Router) = (internal, public);
        outbox.shutdown().await;
        Ok(())
    }
}

mod once {
    use crate::shop::*;
    use pillarbox::{MemoryStore, Outbox};

    async fn run(store: MemoryStore) -> Result<(), BoxError> {
        //~ docs/running-once.md ~ let left = outbox.drain(
        Ok(())
    }
}

mod console {
    use pillarbox::Outbox;
    use pillarbox_console::{Access, Console, Role, Source, User};

    #[derive(Clone)]
    struct Employee {
        mail: String,
        is_on_call: bool,
    }

    fn serve(outbox: Outbox) -> axum::Router {
        //~ docs/console.md ~ let access = Access::decided_by(
        service
    }
}
