//! Execution of work on independent members. The model has no threads, but a driver can provide an executor that has.

/// A piece of work, independent of the others that run with it.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs independent tasks. Results must depend neither on the order of the tasks nor on the threads
/// that run them.
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
