fn main(){ for d in std::env::args().skip(1){ let t=std::time::Instant::now();
 match flashtwin_sim::validate_dir(d.as_ref(), &mut |r,n|{ println!("{n} {} {} req {} cmp {} ok {} bad {} {:?}\n   {:?} {:?}", r.name, r.kind, r.requests, r.operations_compared, r.matched, r.mismatched, r.passed, r.first_mismatch, r.parts.iter().map(|p|(p.what,p.compared,p.mismatched)).collect::<Vec<_>>()); Ok(())}){ Ok(_)=>{}, Err(e)=>println!("ERR {e}")}
 println!("{:?}", t.elapsed()); } }
