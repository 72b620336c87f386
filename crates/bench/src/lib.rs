//! Benchmarks of models, prompts and flows: suites of cases, trials that are durable runs, scoring with the original
//! tests, and paired statistics.
//!
//! A [`suite`] is read from disk into [`case`]s. A [`job`] runs every variant (model, flow, agent) on every case as
//! trials; runs are started through [`fusee::launch::Launcher`], so this crate knows neither flags nor configuration.
//! [`score`] judges the work in a sandbox, [`results`] are written to the job's folder, and [`comparison`] compares two
//! of them with [`statistics`]. [`report`] draws a page; [`atif`] exports trajectories. Nothing is printed here.

pub mod atif;
pub mod case;
pub mod check;
pub mod comparison;
pub mod feedback;
pub mod job;
mod job_error;
pub mod language;
pub mod lock;
pub mod machine;
pub mod ownership;
mod patch;
pub mod report;
pub mod results;
pub mod run_patch;
pub mod score;
pub mod statistics;
pub mod suite;
pub mod summary;
mod trial;
mod trial_cost;
mod usage;
mod working_copy;
