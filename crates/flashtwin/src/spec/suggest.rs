//! Suggests the intended word for a misspelt one.

/// Returns the candidate that is most similar to `word`; `None` if no candidate is similar enough. The limit on the
/// number of edits is a third of the number of letters of `word`, but at least one.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (edits(word, candidate, limit), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of insertions, deletions and replacements that turn `a` into `b`. If this number is above
/// `limit`, the function may return `limit + 1` instead.
fn edits(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_key_and_nonsense_finds_none() {
        assert_eq!(
            nearest("capcity", ["capacity", "policy"].into_iter()),
            Some("capacity")
        );
        assert_eq!(
            nearest("chip", ["chips", "stride"].into_iter()),
            Some("chips")
        );
        assert_eq!(nearest("zzz", ["chips", "stride"].into_iter()), None);
        assert_eq!(edits("kitten", "sitting", 9), 3);
    }
}
