//! Fetching within a [`FetchScope`]: its additions to `fetch.sql`, and their parameters.
//!
//! Every condition is in the text or not: asked at run time whether it applies, it would cost each row of each fetch.

use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{FetchScope, Heads, OrderKey};
use tokio_postgres::types::Type;

use crate::session::Param;

/// $8 the first and $9 the last partition. A partition that does not exist is as good as none.
const OF_THESE_PARTITIONS: &str = r#"
      AND ("partition" BETWEEN $8::smallint AND $9::smallint OR "partition" IS NULL
          OR "partition" NOT BETWEEN 0 AND 255)"#;

/// $11 keys and $12 handlers to leave out. Rows without a key stay in, and a missing handler is a handler like any other.
const WITHOUT_KEYS: &str = r#"
      AND (coalesce(e."ordering_key", e."aggregate_id") IS NULL
          OR (coalesce(e."ordering_key", e."aggregate_id"), coalesce('+' || e."handler", '-')) NOT IN (
              SELECT w."key", coalesce('+' || w."handler", '-')
              FROM unnest($11::text[], $12::text[]) AS w ("key", "handler")))"#;

/// $13 keys and $14 their handlers. IS TRUE says to the planner that they are looked up for each row: a join would be in no order.
const ONLY_KEYS: &str = r#"
      AND ((coalesce(e."ordering_key", e."aggregate_id"), coalesce('+' || e."handler", '-')) IN (
          SELECT o."key", coalesce('+' || o."handler", '-')
          FROM unnest($13::text[], $14::text[]) AS o ("key", "handler"))) IS TRUE"#;

/// One look into the index of heads for each row. OFFSET 0 says so to the planner: a join would be at the mercy of its
/// statistics, and a comparison of `seq` within the look-up would lead to the primary key where they know of no rows.
const BEHIND_NO_HEAD: &str = r#"
      AND NOT EXISTS (
          SELECT FROM (
              SELECT h."seq" FROM {event} AS h
              WHERE coalesce(h."ordering_key", h."aggregate_id") = coalesce(e."ordering_key", e."aggregate_id") COLLATE "C"
                AND h."aside" {blocking} AND h."handler" IS NOT DISTINCT FROM e."handler"
              OFFSET 0
          ) AS head
          WHERE head."seq" < e."seq")"#;

/// One more row, marked by its missing time: in place of the holder the number of interventions; in place of the
/// attempts 1 if there are heads, if it was asked; and in place of its creation the end of the lease of the node $10. All at
/// the moment at which the rows were read.
pub(crate) const AND_INTERVENTIONS: &str = r#"
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ({heads})::int, NULL, NULL,
    (SELECT "expires_at" FROM {node} WHERE "node_id" = $10::text), NULL, NULL, NULL, NULL, "interventions"::text, NULL
FROM {partition} WHERE "partition" = 0"#;

/// Any row in the index of heads.
const ANY_HEAD: &str = r#"SELECT EXISTS (SELECT FROM {event} WHERE "aside" IN (2, 3))"#;

/// The forms of `fetch.sql`.
#[derive(Debug)]
pub(crate) struct Fetches {
    unscoped: String,
    heads_none: ByKeys,
    heads_retry: ByKeys,
    heads_retry_and_dead: ByKeys,
}

/// By what is asked of the keys. Each form binds what the one before it binds, and two more values.
#[derive(Debug)]
struct ByKeys {
    any: String,
    without: String,
    only: String,
}

impl Fetches {
    /// Makes all forms of a text; `verb` fills in the names of tables.
    pub(crate) fn new(text: &str, verb: impl Fn(&str) -> String) -> Self {
        let form = |partitions: &str, keys: &str, heads: &str| {
            let any_head = if heads.is_empty() { "false" } else { ANY_HEAD };
            let interventions =
                if partitions.is_empty() { String::new() } else { AND_INTERVENTIONS.replace("{heads}", any_head) };
            let text = text.replace("{and_of_these_partitions}", partitions).replace("{and_of_these_keys}", keys);
            verb(&text.replace("{and_behind_no_head}", heads).replace("{and_interventions}", &interventions))
        };
        let by_keys = |heads: &str| ByKeys {
            any: form(OF_THESE_PARTITIONS, "", heads),
            without: form(OF_THESE_PARTITIONS, WITHOUT_KEYS, heads),
            only: form(OF_THESE_PARTITIONS, &[WITHOUT_KEYS, ONLY_KEYS].concat(), heads),
        };
        let behind_no = |blocking: &str| by_keys(&BEHIND_NO_HEAD.replace("{blocking}", blocking));
        Self {
            unscoped: form("", "", ""),
            heads_none: by_keys(""),
            heads_retry: behind_no("= 2"),
            heads_retry_and_dead: behind_no("IN (2, 3)"),
        }
    }

    /// The form that a scope asks for.
    pub(crate) fn of(&self, scope: Option<&FetchScope>) -> &str {
        let Some(scope) = scope else { return &self.unscoped };
        let by_keys = match scope.heads {
            Heads::None => &self.heads_none,
            Heads::Retry => &self.heads_retry,
            Heads::RetryAndDead => &self.heads_retry_and_dead,
        };
        match asked(scope) {
            KeyCondition::Any => &by_keys.any,
            KeyCondition::Without => &by_keys.without,
            KeyCondition::Only => &by_keys.only,
        }
    }
}

/// The condition of a scope on the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeyCondition {
    Any,
    Without,
    Only,
}

fn asked(scope: &FetchScope) -> KeyCondition {
    match (&*scope.only, &*scope.without) {
        ([_, ..], _) => KeyCondition::Only,
        ([], []) => KeyCondition::Any,
        ([], [_, ..]) => KeyCondition::Without,
    }
}

/// The values that a scope binds, after the seven that every fetch does.
#[derive(Debug)]
pub(crate) struct Bounds<'a> {
    asked: KeyCondition,
    first: i16,
    last: i16,
    node: Option<&'a str>,
    without: Keys<'a>,
    only: Keys<'a>,
}

/// Keys as two arrays.
type Keys<'a> = (Vec<&'a str>, Vec<Option<&'a str>>);

impl<'a> Bounds<'a> {
    pub(crate) fn of(scope: &'a FetchScope) -> Self {
        Self {
            asked: asked(scope),
            first: i16::from(*scope.partitions.start()),
            last: i16::from(*scope.partitions.end()),
            node: scope.node.as_ref().map(NodeId::as_str),
            without: keys(&scope.without),
            only: keys(&scope.only),
        }
    }

    pub(crate) fn bind(&'a self, params: &mut Vec<Param<'a>>) {
        params.extend([(&self.first as _, Type::INT2), (&self.last as _, Type::INT2), (&self.node as _, Type::TEXT)]);
        for (keys, asked) in [(&self.without, KeyCondition::Without), (&self.only, KeyCondition::Only)] {
            if self.asked >= asked {
                params.extend([(&keys.0 as _, Type::TEXT_ARRAY), (&keys.1 as _, Type::TEXT_ARRAY)]);
            }
        }
    }
}

fn keys(keys: &[OrderKey]) -> Keys<'_> {
    keys.iter().map(|key| (&*key.key, key.handler.as_deref())).unzip()
}
