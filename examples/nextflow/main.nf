// A job for each number, and what they come to.
process SQUARE {
    input: val number
    output: stdout
    script: "expr $number '*' $number"
}

workflow {
    SQUARE(Channel.of(1..4)).map { it.trim() as int }.sum().view { "sum $it" }
}
