//! Traces: opening, detecting the format, reading, measuring, converting.

format::formats! {
    Csv => csv::CSV,
    Binary => binary::BINARY,
    Msr => msr::MSR,
    Spc => cloud::SPC,
    Disksim => columns::DISKSIM,
    Mqsim => columns::MQSIM,
    Ssdsim => columns::SSDSIM,
    Blkparse => blk::BLKPARSE,
    Blktrace => blk::BLKTRACE,
    Vscsi => vscsi::VSCSI,
    OracleGeneral => cachesim::ORACLE_GENERAL,
    Lcs => cachesim::LCS,
    Systor => cloud::SYSTOR,
    Tencent => cloud::TENCENT,
    Alibaba => cloud::ALIBABA,
    Fiu => fiu::FIU,
    Fio => fio::FIO,
}

pub(crate) mod binary;
pub(crate) mod blk;
pub(crate) mod cachesim;
pub(crate) mod cloud;
pub(crate) mod collector;
pub(crate) mod columns;
pub(crate) mod compact;
pub(crate) mod convert;
pub(crate) mod csv;
pub(crate) mod cursor;
pub(crate) mod dates;
pub(crate) mod detect;
pub(crate) mod estimate;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod format;
pub(crate) mod info;
pub(crate) mod input;
pub(crate) mod lines;
pub(crate) mod msr;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod reader;
pub(crate) mod table;
pub(crate) mod units;
pub(crate) mod utf16;
pub(crate) mod vscsi;
pub(crate) mod words;
