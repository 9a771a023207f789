use pillarbox_core::row::Position;
use tokio_postgres::types::Type;

use crate::session::Param;

/// The positions that rows keep, as statements bind them: the texts lie one behind the other, since what stands at a place of an array of texts
/// is found by passing over all that stands before it.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    seqs: Vec<i64>,
    texts: Vec<u8>,
    begins: Vec<i32>,
    lengths: Vec<i32>,
}

impl Positions {
    /// Adds the position of a row above all the others.
    pub(crate) fn push(&mut self, seq: i64, position: &Position) {
        let place = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        self.seqs.push(seq);
        self.begins.push(place(self.texts.len() + 1));
        self.lengths.push(place(position.as_str().len()));
        self.texts.extend_from_slice(position.as_str().as_bytes());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }

    pub(crate) fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        params.extend([
            (&self.seqs as _, Type::INT8_ARRAY),
            (&self.texts as _, Type::BYTEA),
            (&self.begins as _, Type::INT4_ARRAY),
            (&self.lengths as _, Type::INT4_ARRAY),
        ]);
    }
}

/// The assignment of a row's position, by the values that [`Positions`] binds, the first of them as `$first`; NULL for a row that has none.
pub(crate) fn assignment(first: usize) -> String {
    let [seqs, texts, begins, lengths] = [0, 1, 2, 3].map(|next| format!("${}", first + next));
    let place = format!(r#"width_bucket("seq", {seqs}::bigint[])"#);
    format!(
        r#", "delivered_as" = CASE WHEN ({seqs}::bigint[])[{place}] = "seq"
            THEN convert_from(substring({texts}::bytea, ({begins}::int[])[{place}], ({lengths}::int[])[{place}]), 'UTF8') END"#
    )
}
