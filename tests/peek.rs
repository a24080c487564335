mod common;
use nandscope_sim::{Model, cards};
#[test]
#[ignore]
fn peek() {
    let name = std::env::var("CARD").unwrap();
    let model = match name.parse::<u64>() {
        Ok(s) => nandscope_sim::random::card(s),
        _ => Model::parse(cards::text(&name).unwrap(), &name).unwrap(),
    };
    let seed = name.parse().unwrap_or(2);
    if std::env::var_os("MODEL").is_some() {
        println!("{}", model.to_toml());
        println!("{:?}", model.truth());
    }
    let p = common::probe_model(&model, seed, true);
    println!("{}", common::line(&p, &model));
    for r in &p.runs {
        println!(
            "== {} {:?} {} samples, {:.1} s, {:.1} MiB",
            r.experiment,
            r.ended,
            r.samples.len(),
            r.samples.iter().map(|s| s.took.secs()).sum::<f64>(),
            r.samples.iter().filter(|s| s.op != nandscope::device::Op::Read).map(|s| s.len as f64 / 1048576.0).sum::<f64>()
        );
        if std::env::var("RUN").is_ok_and(|x| x == r.experiment) {
            for c in &r.cells {
                println!("{} {:?}", c.label, c.set);
                for t in r.trials(c.id) {
                    if std::env::var_os("TIMES").is_some() {
                        println!("   {:.2} s", t.iter().map(|s| s.took.secs()).sum::<f64>());
                        continue;
                    }
                    println!(
                        "   {}",
                        t.iter()
                            .map(|s| format!("{}@{}:{:.2}ms/{}", s.at >> 10, s.role, s.took.millis(), s.len >> 10))
                            .collect::<Vec<_>>()
                            .join(" ")
                    );
                }
            }
        }
    }
}
