use pillarbox_core::write::BlockingWriter;

use super::Outbox;

impl Outbox {
    /// The same outbox for drivers that block their thread: diesel's own connections, and rusqlite.
    ///
    /// Nothing here is awaited: no runtime is entered and none is needed, and no thread waits for anything but the driver.
    /// Call it where the driver may be called: on a thread of yours, in `tokio::task::spawn_blocking`, or in `interact` of a
    /// deadpool. The outbox itself is started, and delivers, on a runtime as ever.
    ///
    /// ```text
    /// let outbox = outbox.clone();
    /// tokio::task::spawn_blocking(move || {
    ///     let mut conn = pool.get()?;
    ///     let mut tx = outbox.blocking().begin(&mut *conn)?;
    ///     tx.execute("INSERT INTO orders (id) VALUES ('o-1')", [])?;
    ///     outbox.blocking().write(&mut tx, &OrderPlaced { order_id: "o-1".into() })?;
    ///     tx.commit()?;
    ///     Ok::<_, BoxError>(())
    /// })
    /// .await??;
    /// ```
    #[must_use]
    pub fn blocking(&self) -> BlockingWriter<'_> {
        self.shared.writer.blocking()
    }
}
