//! How work on independent members is executed: the model has no threads, but a driver may have.

/// A piece of work, independent of those it is run with.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs independent tasks. Results do not depend on their order or threads.
pub trait Executor {
    /// Runs all tasks, in any order; returns when they are done.
    fn run(&self, tasks: Vec<Task<'_>>);
}

/// Runs tasks one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

impl Executor for Sequential {
    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }
}
