# tests of problems and data
