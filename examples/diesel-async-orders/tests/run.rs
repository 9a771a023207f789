//! The program as its users meet it, on a database of its own. It needs PostgreSQL.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use pillarbox_programtest::{Program, end_of, with_postgres};

#[tokio::test]
async fn an_order_that_was_placed_gets_its_receipt() {
    with_postgres(|url| async move {
        let mut program = Program(env!("CARGO_BIN_EXE_diesel-async-orders")).command(&[]);
        let ended = end_of(program.env("DATABASE_URL", url).spawn().expect("it starts")).await;
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "receipt for ada: 1999 cents\n"), "{ended:?}");
    })
    .await;
}
