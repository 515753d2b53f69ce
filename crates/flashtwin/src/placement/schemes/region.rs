//! Classes by address: ranges of the logical pages.

use super::{Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{parameters, Component, Kind, Provenance, Settings};
use crate::units::Lpn;

parameters! {
    /// Parameters of regions.
    struct Parameters {
        /// End of each region except the last, in percent of the logical pages, separated by commas.
        ends_percent: String = Kind::Text, "\"10\"", "ours";
    }
}

/// The scheme `region`: each range of addresses is a class.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// First page after each region.
    ends: Vec<u32>,
}

impl Shipped for Region {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "region",
            line: "by address: each region has a class of its own, like a namespace",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Ours,
        rule: &[
            "Region i begins where region i - 1 ends; the last region ends with the device. The number of the region is the \
             class of its pages.",
            "Survivors join the open unit of their region.",
        ],
    };

    fn new(settings: &Settings, device: &Device) -> Result<Region, String> {
        let Parameters { ends_percent } = Parameters::of(settings);
        let wrong = |found: &str| {
            format!("ends_percent: found {found:?}; must be rising percentages below 100, such as \"10, 50\"")
        };
        let mut ends = Vec::new();
        for text in ends_percent.split(',') {
            let percent: f64 = text.trim().parse().map_err(|_| wrong(&ends_percent))?;
            let end = (f64::from(device.logical_pages) * percent / 100.0) as u32;
            let rises = ends.last().is_none_or(|&last| end > last);
            if !(0.0..100.0).contains(&percent) || percent == 0.0 || !rises {
                return Err(wrong(&ends_percent));
            }
            ends.push(end);
        }
        Ok(Region { ends })
    }
}

impl Region {
    fn class(&self, lpn: Lpn) -> Class {
        self.ends.partition_point(|&end| end <= lpn.0) as Class
    }
}

impl Scheme for Region {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Scheme,
            ..Needs::classes(self.ends.len() as u16 + 1)
        }
    }

    fn host(&mut self, page: &HostPage) -> Class {
        self.class(page.lpn)
    }

    fn moved(&mut self, page: &MovedPage) -> Class {
        self.class(page.lpn)
    }
}
