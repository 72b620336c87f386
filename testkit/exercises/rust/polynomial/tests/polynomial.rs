use polynomial::Polynomial;

fn p(coefficients: &[i64]) -> Polynomial {
    Polynomial::new(coefficients)
}

#[test]
fn values() {
    assert_eq!(p(&[1, 0, 2]).at(3), 19);
    assert_eq!(p(&[]).at(5), 0);
}

#[test]
fn text() {
    let cases: [(&[i64], &str); 8] = [
        (&[1, -1, 2], "2x^2 - x + 1"),
        (&[0, 1], "x"),
        (&[-5], "-5"),
        (&[1], "1"),
        (&[0, 0, -1], "-x^2"),
        (&[3, 0, 0, 1], "x^3 + 3"),
        (&[-1, -3], "-3x - 1"),
        (&[0, 0], "0"),
    ];
    for (coefficients, expected) in cases {
        assert_eq!(p(coefficients).to_string(), expected);
    }
}

#[test]
fn equality_and_degree() {
    assert_eq!(p(&[1, 2, 0, 0]), p(&[1, 2]));
    assert_ne!(p(&[0, 1]), p(&[1]));
    assert_eq!(p(&[5, 0, 1, 0]).degree(), Some(2));
    assert_eq!(p(&[7]).degree(), Some(0));
    assert_eq!(p(&[0]).degree(), None);
}

#[test]
fn derivatives() {
    assert_eq!(p(&[5, 3, 2, 1]).derivative(), p(&[3, 4, 3]));
    assert_eq!(p(&[9]).derivative(), p(&[]));
    assert_eq!(p(&[]).derivative(), p(&[]));
}

#[test]
fn sums() {
    assert_eq!(&p(&[1, 2]) + &p(&[3, 0, 4]), p(&[4, 2, 4]));
    assert_eq!((&p(&[1, 2]) + &p(&[0, -2])).degree(), Some(0));
}

#[test]
fn products() {
    assert_eq!(&p(&[1, 1]) * &p(&[-1, 1]), p(&[-1, 0, 1]));
    assert_eq!(&p(&[1, 2, 3]) * &p(&[]), p(&[]));
}
