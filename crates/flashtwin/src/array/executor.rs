//! Executors of tasks, each of which works on one member independently of the others. The model creates no threads. A
//! driver can provide an executor that uses several threads.

/// A piece of work that is independent of the other tasks in the same call of [`Executor::run`].
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs independent tasks, in any order and on any threads. The results of the tasks do not depend on this choice.
pub trait Executor {
    /// Runs all tasks, in any order; returns when all have ended.
    fn run(&self, tasks: Vec<Task<'_>>);
}

/// An executor that runs tasks one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

impl Executor for Sequential {
    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }
}
