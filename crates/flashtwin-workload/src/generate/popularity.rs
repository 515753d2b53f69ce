//! Popularity of pages: how often a load accesses each page of a device. Closed forms for independent accesses need it.

use flashtwin::theory::PageClass;

use super::address::Address;
use super::arrival::Arrival;
use super::load::LoadSpec;
use super::size::Size;
use super::spec::GeneratorSpec;
use crate::error::WorkloadError;

/// In a Zipf distribution, each rank up to this one is a class of its own. Each later class contains the ranks from its
/// first rank to [`RANK_STEP`] times its first rank.
const SINGLE_RANKS: u64 = 512;
const RANK_STEP: f64 = 1.01;
/// Number of classes into which a normal distribution is divided.
const NORMAL_CLASSES: u32 = 4096;

/// Popularity of the pages of a load whose accesses are independent of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// Classes of equally popular pages. Together they contain all pages of the device.
    pub classes: Vec<PageClass>,
    /// Whether every page is accessed once per pass, in a new order for each pass. If so, accesses are not independent.
    pub permuted: bool,
    /// Share of the requests that read.
    pub reads: f64,
    /// Share of the requests that write.
    pub writes: f64,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Rate in requests per second if arrivals are a Poisson process; `None` otherwise.
    pub poisson_rate: Option<f64>,
}

impl LoadSpec {
    /// Returns the popularity of the pages of a device, or of a part of a device, of `range_bytes` bytes. If accesses
    /// to pages are not independent, or are too complex for the closed forms, returns the reason.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn popularity(
        &self,
        range_bytes: u64,
        page_bytes: u32,
    ) -> Result<Result<Popularity, String>, WorkloadError> {
        let streams: Vec<_> = self.streams().collect();
        let [stream] = &streams[..] else {
            return Ok(Err("the load has several streams or phases".into()));
        };
        let space = stream.requests.validate(range_bytes)?;
        let found = of_stream(&stream.requests, space.bytes, page_bytes);
        Ok(found.map(|mut popularity| {
            let used: f64 = popularity.classes.iter().map(|class| class.pages).sum();
            let all = (range_bytes / u64::from(page_bytes)) as f64;
            if all - used >= 1.0 {
                popularity.classes.push(PageClass {
                    pages: all - used,
                    accesses: 0.0,
                });
            }
            popularity
        }))
    }
}

fn of_stream(of: &GeneratorSpec, bytes: u64, page_bytes: u32) -> Result<Popularity, String> {
    if of.sequential > 0.0 || of.local > 0.0 || of.pinned > 0.0 {
        return Err("requests depend on the previous one (sequential, local or pinned)".into());
    }
    if of.trim > 0.0 {
        return Err("the load trims pages".into());
    }
    let page = u64::from(page_bytes);
    let request_bytes = match of.size {
        Size::Constant { bytes } if bytes <= of.alignment => Some(bytes),
        _ => None,
    };
    let Some(request_bytes) = request_bytes.filter(|_| page.is_multiple_of(of.alignment)) else {
        return Err(format!(
            "a request may access several pages of {page_bytes} bytes: requests must have one size, at most their \
             alignment, which divides a page"
        ));
    };
    let places = page / of.alignment;
    let permuted = matches!(of.address, Address::Uniform { permute: true, .. });
    if places > 1 && (permuted || matches!(of.address, Address::Zipf { .. })) {
        return Err(format!(
            "a page of {page_bytes} bytes has several places of the pattern"
        ));
    }
    Ok(Popularity {
        classes: classes(&of.address, bytes, (bytes / page) as f64)?,
        permuted,
        reads: 1.0 - of.write - of.flush,
        writes: of.write,
        request_bytes,
        poisson_rate: match of.arrival {
            Arrival::Exponential { rate } => Some(rate),
            _ => None,
        },
    })
}

/// Returns the classes of equally popular pages that an address pattern produces on `pages` pages.
fn classes(address: &Address, bytes: u64, pages: f64) -> Result<Vec<PageClass>, String> {
    let class = |share_of_pages: f64, accesses: f64| PageClass {
        pages: share_of_pages * pages,
        accesses,
    };
    match address {
        Address::Uniform { zoned, .. } if zoned.is_empty() => Ok(vec![class(1.0, 1.0)]),
        Address::Uniform { zoned, .. } => Ok(zoned
            .iter()
            .map(|&(accesses, share)| class(share / 100.0, accesses / 100.0))
            .collect()),
        Address::Hotcold {
            hot_access,
            hot_space,
        } => Ok(vec![
            class(*hot_space, *hot_access),
            class(1.0 - hot_space, 1.0 - hot_access),
        ]),
        Address::Zipf { fio: true, .. } => {
            Err("fio's Zipf hashes several ranks to one place".into())
        }
        Address::Zipf {
            theta,
            ranks_per_place,
            ..
        } => Ok(zipf(*theta, pages * *ranks_per_place as f64)
            .into_iter()
            .map(|class| PageClass {
                pages: class.pages / *ranks_per_place as f64,
                ..class
            })
            .collect()),
        Address::Normal { sigma, mean } => {
            let centre = mean.map_or(0.5, |mean| mean as f64 / bytes as f64);
            Ok(normal(*sigma as f64 / bytes as f64, centre, pages))
        }
        Address::Sequential {} => Err("accesses are sequential, not independent".into()),
        Address::Stack { .. } => Err("accesses repeat recent ones, and are not independent".into()),
        Address::Locality { .. } => Err("the popularity of pages is in a file".into()),
    }
}

/// Returns the classes of equally popular pages of a Zipf distribution. The page with rank k, from 1, is accessed in
/// proportion to 1 / k^theta.
fn zipf(theta: f64, pages: f64) -> Vec<PageClass> {
    let last = pages.round().max(1.0) as u64;
    let mut found = Vec::new();
    let mut first = 1_u64;
    while first <= last {
        let end = match first <= SINGLE_RANKS {
            true => first,
            false => ((first as f64 * RANK_STEP) as u64).min(last),
        };
        let accesses = match first == end {
            true => (first as f64).powf(-theta),
            // The integral approximates the sum over the ranks of a class. Its relative error is below 1 / (24 x
            // 512^2).
            false => integral(theta, first as f64 - 0.5, end as f64 + 0.5),
        };
        found.push(PageClass {
            pages: (end - first + 1) as f64,
            accesses,
        });
        first = end + 1;
    }
    normalised(found)
}

/// Returns the integral of x^-theta.
fn integral(theta: f64, from: f64, to: f64) -> f64 {
    match (theta - 1.0).abs() < 1e-9 {
        true => (to / from).ln(),
        false => (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta),
    }
}

/// Returns the classes of equally popular pages of a normal distribution. `sigma` and `centre` are fractions of the
/// range.
fn normal(sigma: f64, centre: f64, pages: f64) -> Vec<PageClass> {
    // Places far from the centre are rarely accessed, but their pages are also pages of the device.
    let classes = f64::from(NORMAL_CLASSES);
    let (from, to) = (
        (centre - 6.0 * sigma).max(0.0),
        (centre + 6.0 * sigma).min(1.0),
    );
    let mut found: Vec<PageClass> = (0..NORMAL_CLASSES)
        .map(|i| {
            let at = from + (to - from) * (f64::from(i) + 0.5) / classes;
            PageClass {
                pages: (to - from) / classes * pages,
                accesses: (-0.5 * ((at - centre) / sigma).powi(2)).exp(),
            }
        })
        .collect();
    if to - from < 1.0 {
        found.push(PageClass {
            pages: (1.0 - (to - from)) * pages,
            accesses: 0.0,
        });
    }
    normalised(found)
}

fn normalised(mut classes: Vec<PageClass>) -> Vec<PageClass> {
    let sum: f64 = classes.iter().map(|class| class.accesses).sum();
    for class in &mut classes {
        class.accesses /= sum;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Popularity, String> {
        let load = LoadSpec::parse(text).unwrap();
        load.popularity(1 << 30, 4096).unwrap()
    }

    #[test]
    fn classes_cover_all_pages_and_accesses() {
        for text in [
            "uniform:write=1",
            "uniform:permute=true,write=1",
            "uniform:range=300M,write=0.5",
            "uniform:zoned=80/20:10/20:10/60",
            "hotcold:hot_access=0.8,hot_space=0.2",
            "zipf:theta=0.99",
            "zipf:theta=1",
            "normal:sigma=40000k",
        ] {
            let found = of(text).unwrap();
            let pages: f64 = found.classes.iter().map(|class| class.pages).sum();
            let accesses: f64 = found.classes.iter().map(|class| class.accesses).sum();
            assert!((pages / 262_144.0 - 1.0).abs() < 1e-6, "{text}: {pages}");
            assert!((accesses - 1.0).abs() < 1e-9, "{text}: {accesses}");
        }
    }

    #[test]
    fn ranks_of_a_class_have_the_sum_of_their_weights() {
        let (theta, last) = (0.8_f64, 20_000_u32);
        let found = zipf(theta, f64::from(last));
        let weight = |rank: u32| f64::from(rank).powf(-theta);
        let sum: f64 = (1..=last).map(weight).sum();
        assert!((found[0].accesses * sum - 1.0).abs() < 1e-6);
        let tail = &found[found.len() - 1];
        let exact: f64 = (last + 1 - tail.pages as u32..=last).map(weight).sum();
        assert!((tail.accesses * sum / exact - 1.0).abs() < 1e-6);
    }

    #[test]
    fn loads_without_independent_accesses_give_a_reason() {
        for (text, part) in [
            ("sequential:write=1", "sequential"),
            ("uniform:size=32k,write=1", "several pages"),
            ("uniform:write=0.5,trim=0.1", "trims"),
            ("uniform:seq=0.5,write=1", "previous"),
            ("uniform:write=1 + uniform:write=0", "several streams"),
            ("zipf:theta=0.9,align=512,size=512", "several places"),
        ] {
            let reason = of(text).unwrap_err();
            assert!(reason.contains(part), "{text}: {reason}");
        }
    }
}
