use std::fmt::Write as _;

/// A JSON array of integers: what `json_each` takes where other databases have an array to bind.
pub(crate) fn array(numbers: impl IntoIterator<Item = i64>) -> String {
    let mut text = String::from("[");
    for number in numbers {
        if text.len() > 1 {
            text.push(',');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::array;

    #[test]
    fn arrays_of_any_length_are_json() {
        assert_eq!(array([]), "[]");
        assert_eq!(array([1]), "[1]");
        assert_eq!(array([1, -2, i64::MAX]), "[1,-2,9223372036854775807]");
    }
}
