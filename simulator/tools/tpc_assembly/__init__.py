"""Tools for TPC assembly: assembler, disassembler, checker, latencies, scheduler."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _lint(parser: OptionParser) -> None:
    """PROGRAM is TPC assembly, or a kernel in C, of which the scheduled bundles are checked. Findings that are
    certain give exit code 1. Possible findings, which depend on the path, on a predicate or on the initial contents
    of registers, do not; nor do notices about forms seen only in compiler output. A loop whose bounds are not in
    the text is assumed to make many trips. For tile programs (.pto), use `castsim run --timing-only`: it reports
    whatever the target cannot do, tmp tiles that are too small, and races.

    examples:
      castsim lint kernel.tpc
      castsim lint kernel.s --target gaudi2 --json -
    """
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc, .s or .c file; - reads standard input")
    parser.take("headers", "target", "statements")


def _latency(parser: OptionParser) -> None:
    """PRODUCER and CONSUMER are one instruction each, or a bundle of four slots with one instruction and three
    nops. An instruction without a bundle that several slots can execute goes to the first of LOAD, SPU, VPU, STORE.
    With - as the only argument, pairs are read from standard input, one per line: PRODUCER -> CONSUMER. `--json -`
    has one entry per line.

    The distance is counted in bundles: 1 is the next one. If the consumer reads none of the producer's registers
    and no issue rule is known for the pair, the entry is null and the exit code is 1; a line that cannot be read
    gives exit code 2.

    examples:
      castsim latency "add.f16 V10, V2, V3" "mul.f16 V4, V10, V5" --target gaudi2
      castsim latency "nop; nop; nop; set_indx I2, b00001, S1" "ld_tnsr V0, 0x0, I2" --target goya
    """
    add = parser.add_argument
    add("producer", metavar="PRODUCER", help="the earlier instruction; - reads pairs from standard input")
    add("consumer", metavar="CONSUMER", nargs="?", help="the later instruction")
    parser.take("required_target")


def _schedule(parser: OptionParser) -> None:
    """FILE holds one instruction per line, without slots; registers may be virtual: %v.NAME, %s.NAME, %i.NAME,
    %ad.NAME, %vp.NAME, %sp.NAME, pairs %d.NAME and %z.NAME, quads %a.NAME. Labels, loops and declarations are as in
    any program. The result is a program in bundles, on standard output or in the file given by -o; messages about
    it go to standard error. It computes the same as the lines executed one after the other, and is never longer
    than with a NOP for every bundle of waiting.

    examples:
      castsim schedule lines.tpc --target gaudi2
      castsim schedule lines.tpc -o packed.tpc --json -
    """
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text, one instruction per line; - reads standard input")
    parser.take(target="the one the text declares")
    add("-o", "--out", metavar="FILE", help="write the program to FILE")
    add(
        "--longer-text", action="store_true", help="pipeline loops even where the text becomes longer than with padding"
    )
    parser.take("statements")


def _unswizzle(parser: OptionParser) -> None:
    """PROGRAM is TPC assembly; tile programs (.pto) have no lanes to move. In every block without control flow,
    each stored element is traced, byte by byte, to the loaded elements it is made of. Where that is the element in
    the same place, with the same work done for all, the lane moves in between (PACK, UNPACK, MOV_DG, MOV_G) are
    removed, and the work is done in the order that all_lanes conversions leave. Both programs are then run and
    timed on the same inputs: --in NAME=FILE.npy|random:SEED or NAME=zeros (default random:0).

    examples:
      castsim unswizzle programs/tpc_bf16_scale_linear_gaudi.tpc
      castsim unswizzle kernel.tpc --out shorter.tpc
    """
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    parser.take("target", inputs="an input; default random:0")
    parser.take("walk")
    add("--out", metavar="FILE", help="write the new program to FILE")


def _asm(parser: OptionParser) -> None:
    """FILE is TPC assembly; - reads standard input. The target defaults to the one declared in the text (`//
    castsim: target NAME`). Without --out, the listing is printed: address, bytes, canonical text. A kernel in C
    (.c) is compiled: the bundles of castsim's scheduler are printed, or with --text one instruction a line.

    examples:
      castsim asm kernel.tpc --target gaudi2 --out kernel.bin
      castsim asm kernel.tpc --target goya --text
      castsim asm kernel.c --target gaudi2
    """
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text, or a kernel in C; - reads standard input")
    parser.take(target="the one the text declares")
    parser.take("headers")
    add("--text", action="store_true", help="print canonical text instead, one line per input line")
    add("--out", metavar="FILE", help="write the binary, or the text, to FILE")


def _disasm(parser: OptionParser) -> None:
    """FILE is a raw binary, or an ELF file, of which the section .text is read; - reads standard input. Bytes that
    are not a bundle are shown as .byte with the reason.

    examples:
      castsim disasm kernel.bin --target gaudi2
      castsim disasm kernel.o --target greco --machine 0x1234 --text --out kernel.tpc
    """
    add = parser.add_argument
    add("file", metavar="FILE", help="raw binary or ELF file; - reads standard input")
    parser.take("required_target")
    add("--machine", metavar="N", help="accept this ELF machine number too, 0 to 65535")
    add("--text", action="store_true", help="print text that `castsim asm` reads, without addresses and bytes")
    add("--out", metavar="FILE", help="write the text to FILE")


FEATURES = (
    Feature(
        "lint",
        "TPC tools",
        "check assembly against the issue rules without running it",
        _lint,
        "castsim.tools.tpc_assembly.lint",
        documents=("castsim.tools.tpc_assembly.lint:Lint",),
    ),
    Feature(
        "latency",
        "TPC tools",
        "show the latency in bundles between two instructions, and its reason",
        _latency,
        "castsim.tools.tpc_assembly.latency",
        documents=("castsim.tools.tpc_assembly.latency:Latency",),
    ),
    Feature(
        "schedule",
        "TPC tools",
        "pack instructions into bundles, and allocate registers",
        _schedule,
        "castsim.tools.tpc_assembly.schedule",
        documents=("castsim.tools.tpc_assembly.schedule:Schedule",),
    ),
    Feature(
        "unswizzle",
        "TPC tools",
        "remove lane moves around element-wise work",
        _unswizzle,
        "castsim.tools.tpc_assembly.unswizzle",
        documents=("castsim.tools.tpc_assembly.unswizzle:Unswizzled",),
    ),
    Feature(
        "asm",
        "TPC tools",
        "assemble text to a binary, or to canonical text",
        _asm,
        "castsim.tools.tpc_assembly.asm",
        documents=(
            "castsim.tools.tpc_assembly.asm:Assembled",
            "castsim.tools.tpc_assembly.asm:CanonicalText",
        ),
    ),
    Feature(
        "disasm",
        "TPC tools",
        "disassemble a binary to a listing, or to text that assembles to the same bytes",
        _disasm,
        "castsim.tools.tpc_assembly.asm",
        function="execute_disassembly",
        documents=("castsim.tools.tpc_assembly.asm:Disassembled",),
    ),
)
