use serde::{Deserialize, Serialize};

/// An event of 200 bytes as JSON.
#[derive(Debug, Serialize, Deserialize, riverqueue::JobArgs)]
#[river(kind = "event")]
pub(crate) struct Event {
    pub(crate) number: u32,
    data: String,
}

impl Event {
    pub(crate) fn new(number: u32) -> Self {
        /// The characters that are left of 200 beside the frame and the number.
        const DATA: usize = 200 - r#"{"number":,"data":""}"#.len();
        // Digits that do not repeat, because the database would compress those that do.
        let mut state = u64::from(number) + 1;
        let mut data = String::new();
        while data.len() < DATA {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            data += &format!("{:08x}", state >> 32);
        }
        data.truncate(DATA - number.to_string().len());
        Self { number, data }
    }
}
