//! The text form of generated loads: parsing, presets, errors and suggestions.

use flashtwin_workload::{
    Address, Arrival, ErrorKind, GeneratorSpec, LoadSpec, Part, Range, Size, PRESETS,
};

const GIB: u64 = 1 << 30;

#[test]
fn the_text_form_matches_the_specification() {
    let spec =
        GeneratorSpec::parse("zipf:theta=0.99,write=0.7,size=4k,rate=20k/s,requests=1e6").unwrap();
    let expected = GeneratorSpec {
        address: Address::Zipf {
            theta: 0.99,
            scramble: true,
            cluster: 1,
            ranks_per_place: 1,
            fio: false,
        },
        size: Size::Constant { bytes: 4096 },
        arrival: Arrival::Exponential { rate: 20_000.0 },
        write: 0.7,
        requests: Some(1_000_000),
        ..GeneratorSpec::default()
    };
    assert_eq!(spec, expected);
    assert_eq!(
        spec.to_string(),
        "zipf:theta=0.99,size=4096,write=0.7,rate=20000,requests=1000000"
    );
}

const EVERY_FORM: &[&str] = &[
    "uniform",
    "normal:sigma=40000k,mean=1G",
    "zipf:theta=1.2,scramble=false,align=512,range=1.5G",
    "zipf:theta=1.2,cluster=3",
    "hotcold:hot_access=0.9,hot_space=0.1,size=exp(32k)",
    "sequential:size=geometric(8k),arrival=constant,interval=50us",
    "locality:file=lba_freq.csv,size=uniform(4k..64k)",
    "stack:distances=40+12.5+0+9,size=geometric(8k),write=0.5",
    "uniform:size=list(4k*70+64k*30),arrival=hyper,rate=1k/s,cv=8,trim=.1,flush=.1,fua=.5",
    "uniform:on_rate=4765/s,on_length=20,duty=0.1,seq=0.2,local=.1,local_range=64k",
    "uniform:schedule=20k/s*60s+0*500ms+40/ms*7us,write=1",
];

#[test]
fn text_and_toml_forms_read_back_to_the_same_spec() {
    for text in EVERY_FORM
        .iter()
        .chain(PRESETS.iter().map(|(name, ..)| name))
    {
        let spec = GeneratorSpec::parse(text).unwrap();
        assert_eq!(
            GeneratorSpec::parse(&spec.to_string()).unwrap(),
            spec,
            "{text}"
        );
        let as_toml = toml::to_string(&spec).unwrap();
        assert_eq!(
            toml::from_str::<GeneratorSpec>(&as_toml).unwrap(),
            spec,
            "{as_toml}"
        );
    }
    let toml = "write = 0.5\naddress = { pattern = \"zipf\", theta = 0.9 }\n";
    assert!(toml::from_str::<GeneratorSpec>(toml).is_ok());
    for wrong in [
        "wirte = 0.5",
        "address = { pattern = \"uniform\", theta = 0.9 }",
    ] {
        assert!(toml::from_str::<GeneratorSpec>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn presets_are_the_papers_loads_and_can_be_changed() {
    let gcar = GeneratorSpec::parse("gcar-synthetic").unwrap();
    assert_eq!(gcar.size, Size::Constant { bytes: 32 << 10 });
    assert_eq!(gcar.arrival, Arrival::Exponential { rate: 250.0 });
    assert_eq!(
        (gcar.write, gcar.sequential, gcar.requests),
        (0.8, 0.0, Some(1_000_000))
    );
    let uniform = GeneratorSpec::parse("ecr-uniform:write=0.2,requests=100").unwrap();
    assert_eq!(
        (uniform.range, uniform.write, uniform.requests),
        (Some(Range::up_to(Part::Bytes(300 << 20))), 0.2, Some(100))
    );
    let normal = GeneratorSpec::parse("ecr-normal:interval=1ms").unwrap();
    assert_eq!(
        normal.address,
        Address::Normal {
            sigma: 10_000 * 4096,
            mean: None
        }
    );
    assert_eq!(normal.arrival, Arrival::Exponential { rate: 1000.0 });
}

#[test]
fn errors_name_parameters_and_valid_values() {
    let parse_errors = [
        ("zpif:theta=1", "did you mean zipf?"),
        ("zipf:tehta=1", "did you mean theta?"),
        ("uniform:theta=1", "key \"theta\" is not known"),
        ("uniform:write", "is no key=value"),
        (
            "zipf:requests=1e3,requests=2",
            "zipf: requests is given twice; leave one out",
        ),
        (
            "zipf:rate=1/s,interval=4ms",
            "zipf: rate and interval are given; leave one out",
        ),
        (
            "gcar-synthetic:write=0.5,write=0.6",
            "write is given twice; leave one out",
        ),
        ("uniform:write=half", "write=half: a number is expected"),
        ("uniform:write=nan", "a number is expected"),
        ("uniform:size=4q", "bytes are expected, like 4096, 4k"),
        ("uniform:size=exp(4k", "expected 4k, exp(32k)"),
        ("uniform:size=-4k", "bytes are expected"),
        ("uniform:rate=5/h", "a rate is expected, like 20k/s"),
        ("uniform:interval=4", "a span is expected, like 4ms"),
        ("uniform:interval=0ms", "a span is expected"),
        ("uniform:requests=1.5", "a whole number is expected"),
        ("uniform:cv=3", "cv does not go with arrival=none"),
        ("uniform:arrival=hyper", "rate is missing"),
        (
            "uniform:arrival=poisson,rate=1",
            "exponential, hyper, onoff or schedule is expected",
        ),
        (
            "uniform:arrival=schedule",
            "schedule is missing, like schedule=20k/s*60s+0*5s",
        ),
        (
            "uniform:schedule=20k/s",
            "20k/s is no rate and time, like 20k/s*60s+0*5s",
        ),
        ("uniform:schedule=20k/s*6", "a span is expected, like 4ms"),
        (
            "uniform:schedule=20k/s*6s,rate=1/s",
            "rate does not go with arrival=schedule",
        ),
        ("normal", "sigma is missing, like sigma=40000k"),
        ("locality", "file is missing"),
        ("stack", "distances is missing, like distances=40+12"),
        ("stack:distances=40+x", "distances=x: a number is expected"),
        ("zipf:scramble=maybe", "true or false is expected"),
        ("zipf:cluster=2.5", "a whole number is expected"),
        ("", "unknown workload"),
    ];
    for (text, part) in parse_errors {
        let error = GeneratorSpec::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option, "{text}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let build_errors = [
        ("uniform:write=1.5", "from 0 to 1 is possible"),
        ("uniform:write=0.9,trim=0.2", "write + trim + flush = 1.1"),
        ("uniform:seq=0.9,local=0.2", "sequential + local"),
        ("uniform:size=2G", "do not hold one request"),
        ("uniform:size=0", "from 1 byte to 4 GiB"),
        (
            "uniform:range=2G",
            "more than the 1073741824 bytes there are",
        ),
        ("uniform:align=0", "alignment: 0 bytes"),
        ("zipf:cluster=0", "cluster: 0 places; from 1"),
        ("zipf:cluster=2,scramble=false", "and 1 without scramble"),
        ("stack:distances=40", "distances: 1 weights; from 2"),
        (
            "stack:distances=0+1",
            "the first weight, of a new place, must be above 0",
        ),
        ("stack:distances=1+-1", "the weight -1; from 0 to 1e9"),
        ("uniform:rate=0", "rate: 0 requests per second"),
        ("uniform:requests=0", "would generate nothing"),
        ("uniform:arrival=hyper,rate=1,cv=0.5", "cv: 0.5"),
        ("uniform:on_rate=5,duty=0", "duty: 0"),
        ("uniform:on_rate=5,on_length=0.5", "on_length: 0.5"),
        (
            "uniform:schedule=0*6s",
            "0 requests from the first step to the last; at least 0.01 are needed",
        ),
        (
            "uniform:schedule=1/s*1s+0*10000000s",
            "a time from 1 ns to 1e6 s are needed",
        ),
        ("zipf:theta=-1", "theta: -1"),
        ("normal:sigma=0", "sigma = 0 must be above 0"),
        ("normal:sigma=1k,mean=2G", "within the range"),
        ("hotcold:hot_space=1", "above 0 and below 1"),
        ("uniform:size=geometric(1k)", "below the alignment"),
        (
            "uniform:size=uniform(4k..5000)",
            "multiples of the alignment",
        ),
        ("uniform:size=list(4k*0)", "must be above 0"),
    ];
    for (text, part) in build_errors {
        let error = GeneratorSpec::parse(text)
            .unwrap()
            .build(GIB, 1)
            .err()
            .unwrap();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

/// Every generated load in `docs/traces.md` can be parsed. Command lines in it are skipped.
#[test]
fn the_documented_examples_parse() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = text
        .split("```")
        .skip(1)
        .step_by(2)
        .filter(|b| !b.starts_with("sh"))
        .collect();
    let (lines, toml): (Vec<&str>, Vec<&str>) = blocks.iter().partition(|b| !b.starts_with("toml"));
    let mut tried = 0;
    for line in lines
        .iter()
        .flat_map(|b| b.lines())
        .filter(|l| !l.is_empty())
    {
        LoadSpec::parse(line).unwrap();
        tried += 1;
    }
    for block in toml {
        let spec: GeneratorSpec = toml::from_str(block.strip_prefix("toml").unwrap()).unwrap();
        spec.build(GIB, 1).unwrap();
        tried += 1;
    }
    assert!(tried >= 9, "only {tried} examples found");
    for (name, form, _) in PRESETS {
        assert!(
            text.contains(&format!("`{name}` | `{form}`")),
            "{name} is documented as it is"
        );
    }
}

#[test]
fn a_range_may_be_a_share_of_the_device() {
    let spec = GeneratorSpec::parse("uniform:range=25%,requests=2000").unwrap();
    assert_eq!(spec.range, Some(Range::up_to(Part::Percent(25.0))));
    assert_eq!(GeneratorSpec::parse(&spec.to_string()).unwrap(), spec);
    let toml: GeneratorSpec = toml::from_str("range = \"25%\"\nrequests = 2000\n").unwrap();
    assert_eq!(toml, spec);
    let mut workload = spec.build(1 << 30, 1).unwrap();
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    let highest = requests.iter().map(|r| r.offset + r.bytes).max().unwrap();
    assert!(highest <= 1 << 28 && highest > 15 << 24, "{highest}");
    for range in ["0%", "101%", "x%", "-5%"] {
        let error = GeneratorSpec::parse(&format!("uniform:range={range}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("at most 100 %"), "{error}");
    }
}

#[test]
fn suggestions_are_synonyms_or_similar_names() {
    let error = |text: &str| GeneratorSpec::parse(text).unwrap_err().to_string();
    assert!(error("uniform:footprint=1G").ends_with("did you mean range?"));
    assert!(error("uniform:wrte=1").ends_with("did you mean write?"));
    let none = error("uniform:colour=red");
    assert!(
        none.contains("available: write, trim") && !none.contains("did you mean"),
        "{none}"
    );
}
