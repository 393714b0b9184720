//! Tests of the calculator against results of `CPython`, and against invalid input.

use proptest::prelude::*;

use super::evaluate;

/// Expressions and what `CPython` 3 prints for them (`repr(eval(expression))` with the names of the
/// `math` module). Written down once; the values are `CPython`'s, not this crate's.
const CPYTHON: &[(&str, &str)] = &[
    ("1 + 1", "2"),
    ("10 / 2", "5.0"),
    ("2**3", "8"),
    ("sqrt(16)", "4.0"),
    ("7 // 2", "3"),
    ("-7 // 2", "-4"),
    ("7 // -2", "-4"),
    ("-7 % 3", "2"),
    ("7 % -3", "-2"),
    ("-7 % -3", "-1"),
    ("7.5 // 2", "3.0"),
    ("-7.5 // 2", "-4.0"),
    ("7.5 % -2", "-0.5"),
    ("-7.5 % 2", "0.5"),
    ("0.0 % -3", "-0.0"),
    ("-0.0", "-0.0"),
    ("0 * -1.0", "-0.0"),
    ("1 / 3", "0.3333333333333333"),
    ("2 / 3", "0.6666666666666666"),
    ("10 / 3", "3.3333333333333335"),
    ("0.1 + 0.2", "0.30000000000000004"),
    ("1e16", "1e+16"),
    ("1e15", "1000000000000000.0"),
    ("123456789012345678.0", "1.2345678901234568e+17"),
    ("1e-4", "0.0001"),
    ("1e-5", "1e-05"),
    ("0.00001234", "1.234e-05"),
    ("1e22", "1e+22"),
    ("1e23", "1e+23"),
    ("1.5e300 * 1e5", "1.5000000000000001e+305"),
    ("2 ** -1", "0.5"),
    ("2 ** 0.5", "1.4142135623730951"),
    ("2 ** 3 ** 2", "512"),
    ("-2 ** 2", "-4"),
    ("(-2) ** 2", "4"),
    ("2 ** -2 ** 2", "0.0625"),
    ("0 ** 0", "1"),
    ("(-8) ** 3", "-512"),
    ("4 ** 0.5", "2.0"),
    ("2 ** 100", "1267650600228229401496703205376"),
    ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
    ("10 ** 38 // 7", "14285714285714285714285714285714285714"),
    ("12345678901234567890 * 98765432109876543", "1219326311370217949644871231852004270"),
    ("99999999999999999999999 / 7", "1.4285714285714286e+22"),
    ("123456789012345678901234567890 / 3", "4.115226300411523e+28"),
    ("9007199254740993 / 1", "9007199254740992.0"),
    ("9007199254740993 / 3", "3002399751580331.0"),
    ("-1 / 3", "-0.3333333333333333"),
    ("1 / 170141183460469231731687303715884105727", "5.877471754111438e-39"),
    ("100000000000000000000000000000000000000 / 3", "3.3333333333333333e+37"),
    ("1_000_000 + 1", "1000001"),
    ("0xff", "255"),
    ("0b101 + 0o17", "20"),
    (".5 + 5.", "5.5"),
    ("1e3", "1000.0"),
    ("007.5", "7.5"),
    ("00", "0"),
    ("abs(-3)", "3"),
    ("abs(-3.5)", "3.5"),
    ("round(0.5)", "0"),
    ("round(1.5)", "2"),
    ("round(2.5)", "2"),
    ("round(-0.5)", "0"),
    ("round(-2.5)", "-2"),
    ("round(2.675, 2)", "2.67"),
    ("round(0.125, 2)", "0.12"),
    ("round(0.375, 2)", "0.38"),
    ("round(1234.5678, 2)", "1234.57"),
    ("round(1234, -2)", "1200"),
    ("round(5, -170141183460469231731687303715884105727 - 1)", "0"),
    ("round(5.5, -170141183460469231731687303715884105727 - 1)", "0.0"),
    ("round(1250, -2)", "1200"),
    ("round(1350, -2)", "1400"),
    ("round(-1250, -2)", "-1200"),
    ("round(1234.5, -2)", "1200.0"),
    ("round(5, 2)", "5"),
    ("round(3.0, 1)", "3.0"),
    ("round(1e300, 5)", "1e+300"),
    ("floor(-1.5)", "-2"),
    ("floor(1.5)", "1"),
    ("ceil(-1.5)", "-1"),
    ("ceil(1.2)", "2"),
    ("floor(7)", "7"),
    ("min(3, 1, 2)", "1"),
    ("max(3, 1.5, 2)", "3"),
    ("min(1, 1.0)", "1"),
    ("max(2, 2.0)", "2"),
    ("pow(2, 10)", "1024"),
    ("pow(2.0, 3)", "8.0"),
    ("pow(2, -1)", "0.5"),
    ("factorial(0)", "1"),
    ("factorial(20)", "2432902008176640000"),
    ("factorial(33)", "8683317618811886495518194401280000000"),
    ("sin(0)", "0.0"),
    ("sin(1)", "0.8414709848078965"),
    ("cos(pi)", "-1.0"),
    ("tan(pi / 4)", "0.9999999999999999"),
    ("log(e)", "1.0"),
    ("log(100, 10)", "2.0"),
    ("log(8, 2)", "3.0"),
    ("log(2 ** 70)", "48.520302639196174"),
    ("log10(1000)", "3.0"),
    ("log10(2)", "0.3010299956639812"),
    ("exp(0)", "1.0"),
    ("exp(1)", "2.718281828459045"),
    ("exp(-745)", "5e-324"),
    ("pi", "3.141592653589793"),
    ("e", "2.718281828459045"),
    ("tau", "6.283185307179586"),
    ("2 * pi * 3", "18.84955592153876"),
    ("1 < 2", "True"),
    ("1 < 2 < 3", "True"),
    ("1 < 3 < 2", "False"),
    ("1 == 1.0", "True"),
    ("2 ** 53 == 2.0 ** 53", "True"),
    ("2 ** 53 + 1 == 2.0 ** 53", "False"),
    ("2 ** 53 + 1 > 2.0 ** 53", "True"),
    ("10 ** 30 < 1e30", "True"),
    ("10 ** 30 > 1e29", "True"),
    ("3 != 3", "False"),
    ("1 <= 1 >= 1", "True"),
    ("True + True", "2"),
    ("-True", "-1"),
    ("+True", "1"),
    ("abs(True)", "1"),
    ("(1 < 2) * 5", "5"),
    ("1 - -1", "2"),
    ("1 - - - 1", "0"),
    ("--1", "1"),
    ("+-+1", "-1"),
    ("2 * (3 + 4) * 5", "70"),
    ("((((1))))", "1"),
    ("100 - 10 - 1", "89"),
    ("100 / 10 / 2", "5.0"),
    ("2 + 3 * 4 ** 2 / 8 - 1", "7.0"),
    ("5 % 3 * 2", "4"),
    ("1e308 * 1", "1e+308"),
    ("5e-324", "5e-324"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("0.1 * 3", "0.30000000000000004"),
    ("1.1 * 1.1", "1.2100000000000002"),
    ("4.35 * 100", "434.99999999999994"),
    ("1e16 + 1", "1e+16"),
    ("12345.678", "12345.678"),
    ("100.0", "100.0"),
    ("14.0", "14.0"),
    ("1e2", "100.0"),
    ("5 // 0.3", "16.0"),
    ("-5 // 0.3", "-17.0"),
    ("5 % 0.3", "0.20000000000000018"),
    ("-5 % 0.3", "0.09999999999999981"),
    ("1e20 % 3", "1.0"),
    ("1e300 // 7", "1.4285714285714286e+299"),
    ("sqrt(2)", "1.4142135623730951"),
    ("sqrt(10 ** 20)", "10000000000.0"),
    ("max(1, 2, 3,)", "3"),
    ("3.14e-10", "3.14e-10"),
    ("1 / 1e-5", "99999.99999999999"),
    ("6.02e23", "6.02e+23"),
];

#[test]
fn values_agree_with_cpython() {
    let wrong: Vec<_> = CPYTHON
        .iter()
        .filter(|(expression, value)| evaluate(expression).ok().as_deref() != Some(*value))
        .map(|(expression, value)| (expression, value, evaluate(expression)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn errors_are_told_in_the_documents_words() {
    for (expression, message) in [
        ("", "Empty expression provided."),
        ("  \t", "Empty expression provided."),
        ("a + b", "name 'a' is not defined"),
        ("foo(1)", "name 'foo' is not defined"),
        ("import os", "Import not supported"),
        ("__import__('os')", "Import not supported"),
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0.0", "division by zero"),
        ("0 ** -1", "zero cannot be raised to a negative power"),
        ("sqrt(-1)", "math domain error"),
        ("log(0)", "math domain error"),
        ("log(5, 1)", "division by zero"),
        ("exp(1000)", "math range error"),
        ("1e308 * 10", "the result is not a finite number"),
        ("1e999", "the result is not a finite number"),
        ("(-8) ** 0.5", "a root of a negative number is complex, which is not supported"),
        ("9**9**9", "the integer is too large: 38 digits are supported"),
        ("9.0**9**9", "the result is not a finite number"),
        ("10**39", "the integer is too large: 38 digits are supported"),
        ("factorial(34)", "the integer is too large: 38 digits are supported"),
        ("factorial(-1)", "factorial() not defined for negative values"),
        ("factorial(1.5)", "factorial() takes an integer"),
        ("floor(1e300)", "the integer is too large: 38 digits are supported"),
        ("sqrt()", "sqrt() takes 1 argument (0 given)"),
        ("min(1)", "min() takes 2 or more arguments (1 given)"),
        ("007", "leading zeros in decimal integer literals are not permitted"),
        ("2 ^ 3", "'^' at column 3 is not supported: use '**' for powers"),
        ("1 +", "invalid syntax: the expression ends where a value was expected"),
        ("(1", "invalid syntax: the expression ends where ')' was expected"),
        ("1 2", "invalid syntax: '2' at column 3 where an operator was expected"),
        ("1 + * 2", "invalid syntax: '*' at column 5 where a value was expected"),
        ("1)", "invalid syntax: ')' at column 2 where an operator was expected"),
        ("max(1, 2,, 3)", "invalid syntax: ',' at column 10 where a value was expected"),
        ("'a'", "invalid syntax: unexpected ''' at column 1"),
        ("12abc", "invalid number '12abc' at column 1"),
        ("1__0", "invalid number '1__0' at column 1"),
        ("1.2.3", "invalid number '1.2.3' at column 1"),
        (".", "invalid number '.' at column 1"),
        ("5j", "invalid number '5j' at column 1"),
        ("ä + 1", "name 'ä' is not defined"),
    ] {
        assert_eq!(
            evaluate(expression).map_err(|error| error.message().to_owned()),
            Err(message.to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let message = |expression: &str| evaluate(expression).unwrap_err().message().to_owned();
    assert_eq!(message(&"1+".repeat(5000)), "the expression is longer than 4096 bytes");
    let too_deep = "the expression nests more than 100 levels deep";
    assert_eq!(message(&format!("{}1{}", "(".repeat(200), ")".repeat(200))), too_deep);
    assert_eq!(message(&"-".repeat(2000)), too_deep);
    assert_eq!(message(&format!("2{}", "**2".repeat(1000))), too_deep);
    // Width is not depth.
    assert_eq!(evaluate(&format!("1{}", "+1".repeat(2000))).unwrap(), "2001");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _outcome = evaluate(&text);
    }

    #[test]
    fn no_near_expression_makes_it_panic(
        text in "([0-9.e_x]{1,4}|[-+*/%()<>=!,^ ]{1,2}|(sqrt|log|round|min|factorial|pow|floor|pi)\\(?){0,12}"
    ) {
        let _outcome = evaluate(&text);
    }

    #[test]
    fn sums_and_divisions_of_integers_are_exact(a in any::<i64>(), b in any::<i64>()) {
        prop_assert_eq!(evaluate(&format!("{a} + {b}")).ok(), Some((i128::from(a) + i128::from(b)).to_string()));
        if b != 0 {
            prop_assert_eq!(evaluate(&format!("({a} // {b}) * {b} + {a} % {b} == {a}")).ok(), Some("True".to_owned()));
        }
    }

    #[test]
    fn a_float_is_printed_so_that_it_reads_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        let shown = super::number::Number::Float(value).show();
        prop_assert_eq!(shown.parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
}
