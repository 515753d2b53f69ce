//! Python bindings: the compiled module `flashtwin._core`.
//!
//! The bindings are thin. The crates below check the arguments. Results are passed on as JSON text or as columns of
//! bytes, and the package in `python/flashtwin` creates Python objects from them. No result is computed here. Functions
//! that may take more than a moment release the GIL.

mod accesses;
mod columns;
mod control;
mod curve;
mod describe;
mod device;
mod errors;
mod ftl;
mod hits;
mod log;
mod options;
mod placement;
mod policies;
mod theory;
mod user;
mod user_placement;
mod validate;
mod workload;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    flashtwin_workload::set_table_reader(workload::read_table);
    m.add_class::<control::Control>()?;
    m.add_class::<device::Spec>()?;
    m.add_class::<device::Device>()?;
    m.add_class::<workload::Workload>()?;
    m.add_class::<columns::Slices>()?;
    m.add_function(wrap_pyfunction!(columns::parts, m)?)?;
    m.add_class::<accesses::Accesses>()?;
    m.add_class::<user::Access>()?;
    m.add_class::<user::Page>()?;
    m.add_class::<user::PolicyDevice>()?;
    m.add_class::<user::UserPolicy>()?;
    m.add_function(wrap_pyfunction!(policies::policy_names, m)?)?;
    m.add_function(wrap_pyfunction!(policies::catalog_names, m)?)?;
    m.add_function(wrap_pyfunction!(policies::is_policy, m)?)?;
    m.add_function(wrap_pyfunction!(policies::policy_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(policies::policy_info, m)?)?;
    m.add_function(wrap_pyfunction!(policies::trace_policy, m)?)?;
    m.add_function(wrap_pyfunction!(hits::count_hits, m)?)?;
    m.add_class::<curve::LruHits>()?;
    m.add_function(wrap_pyfunction!(curve::lru_curve, m)?)?;
    m.add_function(wrap_pyfunction!(curve::half_width, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::ftl_names, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::ftl_info, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::trace_ftl, m)?)?;
    m.add_function(wrap_pyfunction!(placement::placement_words, m)?)?;
    m.add_function(wrap_pyfunction!(placement::placement_components, m)?)?;
    m.add_function(wrap_pyfunction!(placement::placement_words_of, m)?)?;
    m.add_function(wrap_pyfunction!(placement::trace_placement, m)?)?;
    m.add_function(wrap_pyfunction!(placement::run_placement, m)?)?;
    m.add_function(wrap_pyfunction!(placement::placement_theory, m)?)?;
    m.add_function(wrap_pyfunction!(placement::placement_split, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_device, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_popularity, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_uniform, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_mixed, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_hits, m)?)?;
    m.add_function(wrap_pyfunction!(theory::theory_response, m)?)?;
    m.add_class::<user_placement::RulesSocket>()?;
    m.add_class::<user_placement::PlacementPage>()?;
    m.add_class::<user_placement::Survivor>()?;
    m.add_class::<user_placement::PlacementUnit>()?;
    m.add_class::<user_placement::VictimUnit>()?;
    m.add_class::<user_placement::PoolView>()?;
    m.add_function(wrap_pyfunction!(device::device_names, m)?)?;
    m.add_function(wrap_pyfunction!(workload::presets, m)?)?;
    m.add_function(wrap_pyfunction!(workload::trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(workload::estimate_lines, m)?)?;
    m.add_function(wrap_pyfunction!(workload::trace_info, m)?)?;
    m.add_function(wrap_pyfunction!(workload::convert, m)?)?;
    m.add_function(wrap_pyfunction!(validate::validate, m)?)?;
    Ok(())
}
