//! Which operators there are, and what each takes, gives and does in doubt.
//!
//! This table is behind `--op`, behind the check of types, behind `warpfold ops` and behind `docs/operators.md`.

use crate::input::{Class, Dtype};

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Sum,
    Product,
    Min,
    Max,
    MinMax,
    ArgMin,
    ArgMax,
    And,
    Or,
    Xor,
    All,
    Any,
    Count,
    SumSq,
    L1,
    L2,
    Linf,
    Dot,
    Mean,
    Var,
    Std,
    LogSumExp,
    Mss,
}

/// What an operator gives for elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A value of the elements' type.
    Same,
    /// An integer of 64 bits, signed if the elements are.
    Wide,
    /// The unsigned integer of as many bits.
    Unsigned,
    /// A non-negative integer of 64 bits.
    Uint64,
    Float64,
    Bool,
    /// The type of a complex number's parts.
    Real,
    /// The least and the greatest element.
    Extent,
    /// An element and where it stands.
    Indexed,
}

impl Gives {
    /// The result's type for elements of a type.
    pub fn of(self, dtype: Dtype) -> String {
        let name = dtype.name();
        match self {
            Gives::Same => name.to_string(),
            Gives::Wide if dtype.class() == Class::Signed => "int64".to_string(),
            Gives::Wide | Gives::Uint64 => "uint64".to_string(),
            Gives::Unsigned => format!("uint{}", 8 * dtype.size()),
            Gives::Float64 => "float64".to_string(),
            Gives::Bool => "bool".to_string(),
            Gives::Real => format!("float{}", 8 * dtype.number()),
            Gives::Extent => format!("{{min: {name}, max: {name}}}"),
            Gives::Indexed => format!("{{index: uint64, value: {name}}}"),
        }
    }

    /// What an array of results holds, and how many of them for each: of positions, nothing else.
    pub fn stored(self, dtype: Dtype) -> Option<(Dtype, u64)> {
        let name = match self {
            Gives::Extent => return Some((dtype, 2)),
            Gives::Indexed => return Some((Dtype::Int64, 1)),
            Gives::Same => return Some((dtype, 1)),
            _ => self.of(dtype),
        };
        Dtype::ALL.into_iter().find(|dtype| dtype.name() == name).map(|dtype| (dtype, 1))
    }

    /// The result's type for any of the elements' types of a class.
    pub fn of_class(self, class: Class) -> &'static str {
        match self {
            Gives::Same => "the same type",
            Gives::Wide if class == Class::Signed => "int64",
            Gives::Wide | Gives::Uint64 => "uint64",
            Gives::Unsigned => "unsigned of as many bits",
            Gives::Float64 => "float64",
            Gives::Bool => "bool",
            Gives::Real => "the type of the parts",
            Gives::Extent => "{min, max} of the same type",
            Gives::Indexed => "{index, value} with a value of the same type",
        }
    }
}

/// One operator's row.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    pub op: Op,
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// What it gives for `bool`, signed and unsigned integers, floats and complex numbers; `None` if it takes none.
    gives: [Option<Gives>; 5],
    /// What is computed in what, and what overflows.
    pub arithmetic: &'static str,
    /// What a NaN does, by itself and with `--nan ignore`.
    pub nan: &'static str,
    /// Which of equal elements counts.
    pub ties: Option<&'static str>,
    /// What it gives for no elements.
    pub nothing: &'static str,
}

impl Operator {
    /// What it gives for elements of a type; `None` if it takes none.
    pub fn gives(&self, dtype: Dtype) -> Option<Gives> {
        self.gives[dtype.class() as usize]
    }

    /// The classes of types that it takes, neighbours together that it gives the same for.
    pub fn groups(&self) -> Vec<(Vec<Class>, Gives)> {
        let mut groups: Vec<(Vec<Class>, Gives)> = Vec::new();
        for class in Class::ALL {
            let Some(gives) = self.gives[class as usize] else { continue };
            match groups.last_mut() {
                Some((classes, same)) if same.of_class(classes[0]) == gives.of_class(class) => {
                    classes.push(class);
                }
                _ => groups.push((vec![class], gives)),
            }
        }
        groups
    }

    /// The types that it takes, for messages.
    pub fn taken(&self) -> String {
        let taken: Vec<Class> =
            Class::ALL.into_iter().filter(|&class| self.gives[class as usize].is_some()).collect();
        class_names(&taken)
    }
}

/// The names of the types of some classes, integers as ranges.
pub fn class_names(classes: &[Class]) -> String {
    let names: Vec<String> = classes
        .iter()
        .flat_map(|&class| match class {
            Class::Signed => vec!["int8 to int64".to_string()],
            Class::Unsigned => vec!["uint8 to uint64".to_string()],
            _ => class.dtypes().map(|dtype| dtype.name().to_string()).collect(),
        })
        .collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

impl Op {
    /// The operator of a name.
    pub fn parse(name: &str) -> Option<Op> {
        TABLE.iter().find(|operator| operator.name == name).map(|operator| operator.op)
    }

    /// Its row in the table.
    pub fn operator(self) -> &'static Operator {
        &TABLE[self as usize]
    }

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        self.operator().name
    }

    /// Does it take elements of a type?
    pub fn takes(self, dtype: Dtype) -> bool {
        self.operator().gives(dtype).is_some()
    }

    /// Does it give an element's bits?
    pub fn gives_bits(self) -> bool {
        matches!(self, Op::And | Op::Or | Op::Xor)
    }

    /// Does it take two arrays?
    pub fn takes_two(self) -> bool {
        self == Op::Dot
    }

    /// Does it heed `--ddof`?
    pub fn takes_ddof(self) -> bool {
        matches!(self, Op::Var | Op::Std)
    }

    /// Does it matter to it where elements stand? Then they are taken in logical order, whatever the file's.
    pub fn sees_positions(self) -> bool {
        matches!(self, Op::ArgMin | Op::ArgMax | Op::Mss)
    }

    /// The names of all operators, for messages.
    pub fn known() -> String {
        TABLE.iter().map(|operator| operator.name).collect::<Vec<_>>().join(", ")
    }
}

const NONE: Option<Gives> = None;
const SAME: Option<Gives> = Some(Gives::Same);
const WIDE: Option<Gives> = Some(Gives::Wide);
const UNSIGNED: Option<Gives> = Some(Gives::Unsigned);
const UINT64: Option<Gives> = Some(Gives::Uint64);
const FLOAT64: Option<Gives> = Some(Gives::Float64);
const BOOL: Option<Gives> = Some(Gives::Bool);
const REAL: Option<Gives> = Some(Gives::Real);
const EXTENT: Option<Gives> = Some(Gives::Extent);
const INDEXED: Option<Gives> = Some(Gives::Indexed);

/// What most operators of floats do with a NaN.
const PROPAGATES: &str = "makes the result NaN; ignored, it is left out";
/// What operators of truth values do with one.
const IS_TRUE: &str = "is true; ignored, it is left out";
/// What operators that know no NaN say of it.
const HAS_NONE: &str = "the types have none";

/// Every operator, in the order of [`Op`], which is that in which they are listed.
pub const TABLE: [Operator; 23] = [
    Operator {
        op: Op::Sum,
        name: "sum",
        meaning: "the sum; of bool, how many are true",
        //       bool  signed  unsigned  float  complex
        gives: [UINT64, WIDE, WIDE, SAME, SAME],
        arithmetic: "integers in 64 bits, wrapping; float16, bfloat16 and float32 in float64, float64 in double-double, \
                     rounded once; complex numbers so by parts",
        nan: "makes the result NaN; ignored, it counts as 0",
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::Product,
        name: "product",
        meaning: "the product; of bool, 1 if all are true, else 0",
        gives: [UINT64, WIDE, WIDE, SAME, SAME],
        arithmetic: "integers in 64 bits, wrapping; floats and the parts of complex numbers in float64, rounding each step",
        nan: "makes the result NaN; ignored, it counts as 1",
        ties: None,
        nothing: "1",
    },
    Operator {
        op: Op::Min,
        name: "min",
        meaning: "the least element",
        gives: [SAME, SAME, SAME, SAME, NONE],
        arithmetic: "exact; false is less than true, -0.0 less than 0.0",
        nan: "makes the result NaN; ignored, it is left out, and of nothing but NaNs the result is NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::Max,
        name: "max",
        meaning: "the greatest element",
        gives: [SAME, SAME, SAME, SAME, NONE],
        arithmetic: "exact; true is greater than false, 0.0 greater than -0.0",
        nan: "makes the result NaN; ignored, it is left out, and of nothing but NaNs the result is NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::MinMax,
        name: "minmax",
        meaning: "the least and the greatest element, in one pass",
        gives: [EXTENT, EXTENT, EXTENT, EXTENT, NONE],
        arithmetic: "exact, each as min and max give it",
        nan: "makes both NaN; ignored, it is left out, and of nothing but NaNs both are NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::ArgMin,
        name: "argmin",
        meaning: "the least element and its position, counted from 0",
        gives: [INDEXED, INDEXED, INDEXED, INDEXED, NONE],
        arithmetic: "exact, the value as min gives it; positions are logical ones, the last axis running fastest",
        nan: "the first NaN is the result; ignored, it is left out, and of nothing but NaNs the result is null",
        ties: Some("the first; 0.0 and -0.0 are none"),
        nothing: "null",
    },
    Operator {
        op: Op::ArgMax,
        name: "argmax",
        meaning: "the greatest element and its position, counted from 0",
        gives: [INDEXED, INDEXED, INDEXED, INDEXED, NONE],
        arithmetic: "exact, the value as max gives it; positions are logical ones, the last axis running fastest",
        nan: "the first NaN is the result; ignored, it is left out, and of nothing but NaNs the result is null",
        ties: Some("the first; 0.0 and -0.0 are none"),
        nothing: "null",
    },
    Operator {
        op: Op::And,
        name: "and",
        meaning: "the bits that are set in every element",
        gives: [SAME, SAME, SAME, NONE, NONE],
        arithmetic: "exact",
        nan: HAS_NONE,
        ties: None,
        nothing: "all bits (true, -1, the greatest unsigned number)",
    },
    Operator {
        op: Op::Or,
        name: "or",
        meaning: "the bits that are set in any element",
        gives: [SAME, SAME, SAME, NONE, NONE],
        arithmetic: "exact",
        nan: HAS_NONE,
        ties: None,
        nothing: "no bits (false, 0)",
    },
    Operator {
        op: Op::Xor,
        name: "xor",
        meaning: "the bits that are set in an odd number of elements",
        gives: [SAME, SAME, SAME, NONE, NONE],
        arithmetic: "exact",
        nan: HAS_NONE,
        ties: None,
        nothing: "no bits (false, 0)",
    },
    Operator {
        op: Op::All,
        name: "all",
        meaning: "whether every element is true: not zero",
        gives: [BOOL; 5],
        arithmetic: "exact; -0.0 is false, a complex number is true if either part is",
        nan: IS_TRUE,
        ties: None,
        nothing: "true",
    },
    Operator {
        op: Op::Any,
        name: "any",
        meaning: "whether any element is true: not zero",
        gives: [BOOL; 5],
        arithmetic: "exact; -0.0 is false, a complex number is true if either part is",
        nan: IS_TRUE,
        ties: None,
        nothing: "false",
    },
    Operator {
        op: Op::Count,
        name: "count",
        meaning: "how many elements are true: not zero",
        gives: [UINT64; 5],
        arithmetic: "exact; -0.0 is false, a complex number is true if either part is",
        nan: IS_TRUE,
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::SumSq,
        name: "sumsq",
        meaning: "the sum of squares; of complex numbers, of the moduli's",
        gives: [NONE, UINT64, UINT64, SAME, REAL],
        arithmetic: "integers in 64 bits, wrapping; float16, bfloat16, float32 and complex64 in float64, float64 and \
                     complex128 in double-double, rounded once",
        nan: PROPAGATES,
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::L1,
        name: "l1",
        meaning: "the 1-norm: the sum of magnitudes; of complex numbers, of moduli",
        gives: [NONE, UINT64, UINT64, SAME, REAL],
        arithmetic: "integers in 64 bits, wrapping; float16, bfloat16, float32 and complex64 in float64, float64 and \
                     complex128 in double-double, rounded once",
        nan: PROPAGATES,
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::L2,
        name: "l2",
        meaning: "the 2-norm: the square root of the sum of squares",
        gives: [NONE, FLOAT64, FLOAT64, SAME, REAL],
        arithmetic: "integers of up to 32 bits from the exact sum of squares; int64 and uint64 in double-double; float16, \
                     bfloat16, float32 and complex64 in float64, float64 and complex128 in double-double and scaled, so \
                     that nothing overflows or underflows on the way",
        nan: PROPAGATES,
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::Linf,
        name: "linf",
        meaning: "the maximum norm: the greatest magnitude; of complex numbers, the greatest modulus",
        gives: [NONE, UNSIGNED, UNSIGNED, SAME, REAL],
        arithmetic: "exact for integers, the lowest included, and floats; moduli are rounded",
        nan: PROPAGATES,
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::Dot,
        name: "dot",
        meaning: "the dot product with the array of --with, of the same type and length",
        gives: [NONE, WIDE, WIDE, SAME, SAME],
        arithmetic: "integers in 64 bits, wrapping; float16, bfloat16, float32 and complex64 in float64, float64 and \
                     complex128 in double-double, rounded once; complex numbers are not conjugated",
        nan: "makes the result NaN; ignored, pairs with a NaN are left out",
        ties: None,
        nothing: "0",
    },
    Operator {
        op: Op::Mean,
        name: "mean",
        meaning: "the arithmetic mean; of bool, the share that is true",
        gives: [FLOAT64, FLOAT64, FLOAT64, SAME, SAME],
        arithmetic: "the sum as sum takes it, of integers the exact one, divided by the number of elements",
        nan: "makes the result NaN; ignored, it is left out, and of nothing but NaNs the result is NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::Var,
        name: "var",
        meaning: "the variance: the sum of squared distances from the mean by the number of elements less --ddof",
        gives: [NONE, FLOAT64, FLOAT64, SAME, REAL],
        arithmetic: "int8 to int32, uint8 to uint32 from exact sums, the others in float64 from distances to a near value, so \
                     that a mean far from 0 costs no digits; NaN where there are no more elements than --ddof",
        nan: "makes the result NaN; ignored, it is left out, and of nothing but NaNs the result is NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::Std,
        name: "std",
        meaning: "the standard deviation: the square root of the variance, with --ddof as there",
        gives: [NONE, FLOAT64, FLOAT64, SAME, REAL],
        arithmetic: "as var, the root taken before rounding",
        nan: "makes the result NaN; ignored, it is left out, and of nothing but NaNs the result is NaN",
        ties: None,
        nothing: "null",
    },
    Operator {
        op: Op::LogSumExp,
        name: "logsumexp",
        meaning: "the logarithm of the sum of exponentials",
        gives: [NONE, NONE, NONE, SAME, NONE],
        arithmetic: "in float64 relative to the greatest element, so that nothing overflows; of -inf alone, -inf",
        nan: PROPAGATES,
        ties: None,
        nothing: "-inf",
    },
    Operator {
        op: Op::Mss,
        name: "mss",
        meaning: "the greatest sum of neighbours, in logical order; 0 if none is positive",
        gives: [NONE, WIDE, WIDE, SAME, NONE],
        arithmetic: "integers in 64 bits, wrapping; floats in float64, rounded once",
        nan: PROPAGATES,
        ties: None,
        nothing: "0",
    },
];

const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        assert!(TABLE[i].op as usize == i, "the table is in the order of Op");
        i += 1;
    }
};
