//! Integers with thousands separators.

/// A number with a comma between groups of three digits, such as `11,737`.
pub(super) fn grouped<N: TryInto<u64>>(number: N) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_set_apart() {
        let all = [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        assert!(all.into_iter().all(|(number, text)| grouped(number) == text));
    }
}
