"""Log pages of flexible data placement (NVMe)."""

from __future__ import annotations

from typing import Any

_ISOLATION = {"ii": "initially-isolated", "pi": "persistently-isolated"}


def logs(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """Return log pages 20h to 23h of a run."""
    page_bytes = raw["page_bytes"]
    programmed: dict[int, int] = {}
    for owner in raw["after"]["owners"]:
        if owner["class"] is not None:
            pages = owner["host_pages"] + owner["moved_in"]
            programmed[owner["class"]] = programmed.get(owner["class"], 0) + pages
    configuration = {
        "valid": True,
        "volatile_write_cache": False,
        "rgif": raw["group_bits"],
        "nrg": raw["groups"],
        "nruh": len(raw["handles"]),
        "maxpids": raw["placement_handles"] - 1,
        "runs": raw["unit_pages"] * page_bytes,
        "erutl_s": 0,
        "ruh": [{"type": _ISOLATION[kind]} for kind in raw["handles"]],
    }
    usage = [
        {
            "ruhid": handle,
            "attributes": "host-specified" if handle < raw["placement_handles"] else "unused",
            "hbmw": str(accepted * page_bytes),
            "mbmw": str(programmed.get(handle, 0) * page_bytes),
        }
        for handle, accepted in enumerate(raw["after"]["accepted"])
    ]
    host, media, erased = (str(pages * page_bytes) for pages in raw["totals"])
    codes = {"host": ("00h", "02h", "03h"), "controller": ("80h", "81h")}
    return [
        {"log": "20h", "configurations": [configuration]},
        {"log": "21h", "ruh": usage},
        {"log": "22h", "hbmw": host, "mbmw": media, "mbe": erased},
        *(
            {
                "log": "23h",
                "kind": kind,
                "total": sum(raw["events"][code] for code in codes[kind]),
                "events": raw["last_events"][kind],
            }
            for kind in codes
        ),
    ]
