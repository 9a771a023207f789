mod in_memory {
    use crate::shop::*;
    use pillarbox::Delivery;
    use pillarbox_testkit::{Recorder, TestOutbox};

    async fn receipts_are_sent() -> Result<(), BoxError> {
        //~ docs/testing.md ~ let mails = Recorder::around(
        Ok(())
    }
}

mod any_mode {
    use crate::shop::*;
    use pillarbox::Outbox;
    use pillarbox::handle::{Registration, on};
    use pillarbox_testkit::TestOutbox;

    fn handlers(mails: Mails) -> Vec<Registration> {
        vec![on(move |placed| mails.clone().send_receipt(placed)).named("mailer")]
    }

    async fn start(fake_mails: Mails) -> Result<(), BoxError> {
        //~ docs/testing.md ~ let test = TestOutbox::start_as(
        Ok(())
    }
}

mod configured {
    use std::time::Duration;

    use crate::shop::*;
    use pillarbox::config::Settings;
    use pillarbox::handle::Registration;
    use pillarbox::SqliteStore;
    use pillarbox_testkit::WrittenEvents;

    async fn start(settings: Settings, store: SqliteStore, handlers: Vec<Registration>) -> Result<(), BoxError> {
        //~ docs/testing.md ~ pillarbox_testkit::wait_until_idle(&outbox
        Ok(())
    }
}
