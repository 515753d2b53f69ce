//! The LRU stack model (Mattson et al. 1970). A unit is a place with a fixed size, such as a page of a database or of a
//! journal. Each request accesses a new unit, or a unit that was used before. In the second case, the distance is the
//! number of other units used since the last use of this unit. Distances are drawn by measured frequencies.

use std::collections::{HashSet, VecDeque};

use super::rng::Rng;
use super::size::Size;
use super::space::Space;
use crate::error::{ErrorKind, WorkloadError};

/// Largest number of classes of distances. The bounds of the classes are powers of two. With more classes, removing a
/// unit from the middle of the list would take longer than the rest of a request.
const CLASSES_MAX: usize = 18;

/// Number of the random stream for sizes. It is separate from the streams of the generator.
const STREAM_SIZES: u64 = 0x5354_4143_4b00_0000;

/// Units that were used recently. Reads have units of their own, because written data are seldom read. Writes and trims
/// share their units.
pub(crate) struct Stack {
    /// Cumulative shares: first that of a new place, then those of the distances 0, 1, 2 to 3, 4 to 7, and so on.
    shares: Vec<f64>,
    reads: Recent,
    writes: Recent,
    seed: u64,
}

/// Places in the order of their last use. The most recently used place is the last.
struct Recent {
    order: VecDeque<u64>,
    present: HashSet<u64>,
    most: usize,
}

/// Checks the weights of the distances.
pub(crate) fn validate(weights: &[f64]) -> Result<(), WorkloadError> {
    let wrong = |text: String| Err(WorkloadError::new(ErrorKind::Option, text));
    if !(2..=CLASSES_MAX).contains(&weights.len()) {
        return wrong(format!(
            "distances: {} weights; from 2 (a new place, distance 0) to {CLASSES_MAX} are possible",
            weights.len()
        ));
    }
    if let Some(w) = weights.iter().find(|w| !(0.0..=1e9).contains(*w)) {
        return wrong(format!(
            "distances: the weight {w}; from 0 to 1e9 is possible"
        ));
    }
    if weights[0] == 0.0 {
        return wrong("distances: the first weight, of a new place, must be above 0".to_string());
    }
    Ok(())
}

impl Stack {
    /// Creates the model. The first weight is that of a new place, the others are those of the distances.
    ///
    /// # Errors
    /// Fails if there are too few or too many weights, or if the weight of a new place is 0.
    pub fn new(weights: &[f64], seed: u64) -> Result<Self, WorkloadError> {
        validate(weights)?;
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let shares = weights
            .iter()
            .map(|w| {
                sum += w / total;
                sum
            })
            .collect();
        // Upper end of the last distance class.
        let most = 1 << (weights.len() - 2);
        Ok(Stack {
            shares,
            reads: Recent::new(most),
            writes: Recent::new(most),
            seed,
        })
    }

    /// Draws the start and the size of a request. Returns `None` if it does not fit into the range and must be drawn
    /// again.
    pub fn draw(
        &mut self,
        rng: &mut Rng,
        space: Space,
        size: &Size,
        reads: bool,
    ) -> Option<(u64, u64)> {
        let distance = self.distance(rng);
        let recent = match reads {
            true => &mut self.reads,
            false => &mut self.writes,
        };
        let place = match distance.and_then(|back| recent.take(back)) {
            Some(place) => place,
            None => rng.below(space.units()),
        };
        let bytes = size.draw(
            &mut Rng::new(self.seed ^ STREAM_SIZES, place),
            space.alignment,
        );
        let start = place * space.alignment;
        if !space.fits(start, bytes) {
            return None;
        }
        recent.use_now(place);
        Some((start, bytes))
    }

    /// Draws the distance: the number of other units used since the last use of the unit to access. `None` for a new
    /// unit.
    fn distance(&self, rng: &mut Rng) -> Option<usize> {
        let drawn = rng.unit();
        let class = self.shares.iter().position(|share| drawn <= *share);
        match class.unwrap_or(self.shares.len() - 1) {
            0 => None,
            1 => Some(0),
            class => {
                let first = 1u64 << (class - 2);
                Some((first + rng.below(first)) as usize)
            }
        }
    }
}

impl Recent {
    fn new(most: usize) -> Self {
        Recent {
            order: VecDeque::new(),
            present: HashSet::new(),
            most,
        }
    }

    /// Removes and returns the place with the distance `back`: `back` other places were used after it. `None` if fewer
    /// places are known.
    fn take(&mut self, back: usize) -> Option<u64> {
        let at = self.order.len().checked_sub(back + 1)?;
        let place = self.order.remove(at)?;
        self.present.remove(&place);
        Some(place)
    }

    /// Puts a place on top of the stack. Drops the place at the bottom if it is now deeper than any distance.
    fn use_now(&mut self, place: u64) {
        if !self.present.insert(place) {
            self.order.retain(|other| *other != place);
        }
        self.order.push_back(place);
        if self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.present.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fraction of each class of distances in a sequence of places. A place that was not used before counts
    /// as new, and so does a place whose distance is beyond the classes.
    fn distances(places: &[u64], classes: usize) -> Vec<f64> {
        let mut order: Vec<u64> = Vec::new();
        let mut counts = vec![0.0; classes];
        for place in places {
            let class = match order.iter().rev().position(|p| p == place) {
                None => 0,
                Some(0) => 1,
                Some(back) => back.ilog2() as usize + 2,
            };
            counts[if class < classes { class } else { 0 }] += 1.0 / places.len() as f64;
            order.retain(|p| p != place);
            order.push(*place);
        }
        counts
    }

    #[test]
    fn distances_have_their_shares_and_a_place_keeps_its_size() {
        let weights = [30.0, 10.0, 0.0, 20.0, 25.0, 15.0];
        let space = Space {
            first: 0,
            bytes: 1 << 40,
            alignment: 4096,
        };
        for seed in flashtwin::seeds(3) {
            let mut stack = Stack::new(&weights, seed).unwrap();
            let mut rng = Rng::new(seed, 3);
            let mut places = Vec::new();
            let mut sizes = std::collections::HashMap::new();
            while places.len() < 20_000 {
                let size = Size::Geometric { mean: 20_000 };
                let Some((start, bytes)) = stack.draw(&mut rng, space, &size, false) else {
                    continue;
                };
                assert_eq!(*sizes.entry(start).or_insert(bytes), bytes);
                places.push(start);
            }
            let seen = distances(&places, weights.len());
            for (class, weight) in weights.iter().enumerate() {
                let expected = weight / 100.0;
                assert!(
                    (seen[class] - expected).abs() < 0.015,
                    "class {class}: {:.3} of {expected:.3}",
                    seen[class]
                );
            }
        }
    }

    #[test]
    fn reads_and_writes_have_units_of_their_own() {
        let space = Space {
            first: 0,
            bytes: 1 << 40,
            alignment: 4096,
        };
        let size = Size::Constant { bytes: 4096 };
        let mut stack = Stack::new(&[1.0, 9.0], 1).unwrap();
        let mut rng = Rng::new(1, 3);
        let mut written = HashSet::new();
        for i in 0..2000 {
            let (start, _) = stack.draw(&mut rng, space, &size, i % 2 == 0).unwrap();
            match i % 2 == 0 {
                true => assert!(!written.contains(&start)),
                false => {
                    written.insert(start);
                }
            }
        }
        assert!(written.len() > 50, "{} places", written.len());
    }

    #[test]
    fn a_small_range_is_drawn_from_without_end() {
        let space = Space {
            first: 0,
            bytes: 8 * 4096,
            alignment: 4096,
        };
        let mut stack = Stack::new(&[50.0, 10.0, 10.0, 10.0, 10.0, 10.0], 1).unwrap();
        let mut rng = Rng::new(1, 3);
        for _ in 0..2000 {
            let (start, _) = stack
                .draw(&mut rng, space, &Size::Constant { bytes: 4096 }, false)
                .unwrap();
            assert!(start < space.bytes);
            assert!(stack.writes.order.len() <= 8);
            assert_eq!(stack.writes.order.len(), stack.writes.present.len());
        }
    }
}
