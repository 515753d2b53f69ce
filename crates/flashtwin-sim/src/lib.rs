//! The offline driver: feeds a workload to a device in virtual time and collects the results.
//!
//! Results are reproducible: the same configuration, workload and seed give the same bytes. Virtual time is the only
//! clock. Threads are used only for members of an array that do not influence each other.

mod ahead;
mod batches;
mod clients;
mod conservation;
mod control;
mod error;
mod faults;
mod history;
mod measure;
mod outcome;
mod passes;
mod placement_log;
mod precondition;
mod recorded;
mod remote_rules;
mod run;
mod snapshot;
mod speed;
mod subject;
mod summary;
mod threads;
mod timeline;
mod untimed;
mod validate;
mod warmup;

pub use batches::RequestBatch;
pub use clients::{run_clients, Client, ClientPart, ClientsOutcome, ClientsPlan};
pub use control::{Control, WorkPhase};
pub use error::{Backlog, SimError};
pub use faults::{Fault, FaultKind, FaultsOutcome, PhaseOutcome, RebuildPoint};
pub use history::{History, HistoryPoint, RecordedHistory};
pub use measure::{measure, Figure};
pub use outcome::{Outcome, Steady};
pub use passes::{DriveWrites, Passes};
pub use placement_log::{placement_logs, placement_status};
pub use precondition::{
    fill_buffer, precondition, precondition_by_load, InitialState, Precondition,
};
pub use remote_rules::{reply_for_rules, RemoteRules};
pub use run::{run, Beyond, Pacing, RunConfig, Sink};
pub use snapshot::{load_snapshot, save_snapshot};
pub use speed::Speed;
pub use subject::{Described, Drivable, Logged};
pub use summary::{
    size_text, ArraySummary, BufferReport, Count, Counts, FlashSummary, Health, Hits, Inside,
    Latency, Lifetime, MemberSummary, NamedCount, PassesSummary, PhaseSummary, PlacementSummary,
    Purpose, RebuildSummary, RunInfo, SeriesPoint, SteadySummary, Summary, Throughput,
};
pub use threads::Threads;
pub use timeline::{Row, Timeline, Window};
pub use untimed::{run_untimed, Untimed, UntimedError, UntimedPlan, Warm, WARM_MOST};
pub use validate::{validate_dir, CaseReport, PartReport};
