//! A deterministic simulation of the engine.
//!
//! Each seed is a small world: nodes, brokers, writers, operators and handlers on one database, in one thread on a virtual
//! clock. The engine is the real one, on the in-memory store; around it everything fails. Whatever happens is chosen by the seed, so
//! a seed that violates an invariant violates it again.

pub mod chance;
pub mod check;
pub mod engine;
pub mod plan;
pub mod planted_bugs;
pub mod seeds;
pub mod story;
pub mod world;

use chance::Chance;
use plan::Plan;
use story::Story;
use world::{End, World};

/// The result of a seed.
#[derive(Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The result of its world.
    pub end: End,
    /// The hash of all that happened.
    pub hash: u64,
    /// The plan, for people.
    pub plan: String,
    /// A line for each happening, if they were to be kept.
    pub lines: Vec<String>,
}

/// Runs the world of a seed.
///
/// # Errors
/// The operating system's, which refuses a runtime.
pub fn simulate(seed: u64, traced: bool) -> std::io::Result<Run> {
    let runtime = engine::runtime(seed)?;
    let (end, hash, plan, lines) = runtime.block_on(async {
        let chance = Chance::new(seed);
        let plan = Plan::choose(&chance);
        let told = if traced { format!("{plan:?}") } else { String::new() };
        let story = Story::begin(traced);
        let world = World::new(plan, chance, story.clone());
        let end = world.run().await;
        (end, story.hash(), told, story.lines())
    });
    drop(runtime);
    Ok(Run { seed, end, hash, plan, lines })
}
